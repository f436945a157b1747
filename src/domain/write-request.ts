/** What the kube face asks of the intake. No text that came from outside is checked yet. */
import type { Caller } from './caller.js';
import type { ServedType } from './catalogue.js';
import type { ClusterName } from './cluster.js';
import type { Key } from './key.js';
import type { StoredObject } from './object.js';
import type { ShardName } from './shard.js';

/** Who waits for the answer: a write that waits for its turn is given up once nobody does. */
export interface Asker {
  readonly isEnded: boolean;
  /** Runs the task at the end. The result takes the task back. */
  onEnd(task: () => void): () => void;
}

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
  asker: Asker;
}>;

export type DeleteRequest = Readonly<{
  caller: Caller;
  type: ServedType;
  key: Key;
  dryRun: boolean;
  /** Preconditions: one that does not hold refuses the delete (409). */
  uid: string | undefined;
  resourceVersion: string | undefined;
  asker: Asker;
}>;

/** The object as it is now. After a dry run it has no revision of its own. */
export type Stored = Readonly<{ object: StoredObject; warnings: readonly string[] }>;
