/** The requests of the kube API to the intake. Texts that clients sent are not validated yet. */
import type { Caller } from './caller.js';
import type { ServedType } from './catalogue/catalogue.js';
import type { ClusterName } from './cluster.js';
import type { Key } from './key.js';
import type { StoredObject } from './object.js';
import type { ShardName } from './shard.js';

/**
 * The client that waits for the answer. A waiting write is dropped once its client has
 * disconnected.
 */
export interface Asker {
  readonly isEnded: boolean;
  /** Runs the task once the client has disconnected. The returned function cancels it. */
  onEnd(task: () => void): () => void;
}

/** What to do with duplicate member names in a body. */
export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

export type CreateRequest = Readonly<{
  caller: Caller;
  type: ServedType;
  /** The version in the URL. */
  version: string;
  identity: string;
  shard: ShardName;
  cluster: ClusterName;
  /** Undefined if the URL has none. */
  namespace: string | undefined;
  fieldValidation: FieldValidation;
  dryRun: boolean;
}>;

export type UpdateRequest = Readonly<{
  caller: Caller;
  type: ServedType;
  version: string;
  key: Key;
  /** A PUT must name the revision it replaces; a patch need not. */
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
  /** Preconditions: the delete is refused with 409 if one does not hold. */
  uid: string | undefined;
  resourceVersion: string | undefined;
  asker: Asker;
}>;

/** The new state of the object. A dry run gives it no revision of its own. */
export type Stored = Readonly<{ object: StoredObject; warnings: readonly string[] }>;
