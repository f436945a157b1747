/** What crosses between the serving thread and the committer's thread. Bodies are copied as whole buffers, never as views of a pool (D1). */
import type { Key } from '../../domain/key.js';
import type { Revision } from '../../domain/revision.js';
import type { WireBatch } from './wire-batch.js';

export type CommitterOptions = Readonly<{
  databaseFile: string;
  witnessFile: string;
  nonce: string;
  epoch: number;
  momentIntervalMs: number;
}>;

export type ToCommitter =
  | Readonly<{ kind: 'commit'; batch: WireBatch; nowMs: number }>
  | Readonly<{ kind: 'compact'; upTo: Revision; tombstonesUpTo: Revision; tombstonesMax: number; rowsMax: number }>
  /** Asks whether the disk takes a write. */
  | Readonly<{ kind: 'probe' }>
  | Readonly<{ kind: 'close' }>;

export type Decided =
  | Readonly<{ kind: 'written'; revision: Revision; replaced: Revision }>
  | Readonly<{ kind: 'refused'; why: 'exists' | 'absent' | 'changed' }>;

/** A survivor that was stated again because its namesake on another shard was deleted. */
export type Restated = Readonly<{ key: Key; revision: Revision; replaced: Revision }>;

export type Committed = Readonly<{
  kind: 'committed';
  revision: Revision;
  /** One for each mutation, in order. */
  decided: readonly Decided[];
  restated: readonly Restated[];
  movedPaths: readonly string[];
  logBytes: number;
  elapsedMs: number;
}>;

export type FromCommitter =
  | Readonly<{ kind: 'ready' }>
  | Committed
  /** Nothing of the batch was stored. */
  | Readonly<{ kind: 'failed'; message: string; code: string }>
  | Readonly<{ kind: 'not-compacted'; message: string; code: string }>
  | Readonly<{ kind: 'compacted'; compacted: Revision; logBytes: number; done: boolean; elapsedMs: number }>
  | Readonly<{ kind: 'probed'; failure: string | undefined }>
  | Readonly<{ kind: 'closed' }>;
