/** What the kube face asks of the intake. No text that came from outside is checked yet. */
import type { Caller } from './caller.js';
import type { ServedType } from './catalogue.js';
import type { ClusterName } from './cluster.js';
import type { Key } from './key.js';
import type { StoredObject } from './object.js';
import type { ShardName } from './shard.js';

/** What to do with names that stand twice in a body. */
export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

export type CreateRequest = Readonly<{
  caller: Caller;
  type: ServedType;
  /** The version of the URL. */
  version: string;
  identity: string;
  shard: ShardName;
  cluster: ClusterName;
  /** Undefined when the URL has none. */
  namespace: string | undefined;
  fieldValidation: FieldValidation;
  dryRun: boolean;
}>;

export type UpdateRequest = Readonly<{
  caller: Caller;
  type: ServedType;
  version: string;
  key: Key;
  /** A PUT must name the state it replaces; a patch need not. */
  mustNameRevision: boolean;
  fieldValidation: FieldValidation;
  dryRun: boolean;
}>;

export type DeleteRequest = Readonly<{
  caller: Caller;
  type: ServedType;
  key: Key;
  dryRun: boolean;
  /** Preconditions: one that does not hold refuses the delete (409). */
  uid: string | undefined;
  resourceVersion: string | undefined;
}>;

/** The object as it is now. After a dry run it has no revision of its own. */
export type Stored = Readonly<{ object: StoredObject; warnings: readonly string[] }>;
