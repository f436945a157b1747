/**
 * The messages between the serving thread and the committer's thread. Bodies cross in whole
 * buffers, never as views of a pool.
 */
import type { Worker } from 'node:worker_threads';
import type { SweepProgress } from '../batch-item.js';
import type { MovedPath } from '../../domain/change.js';
import type { ShardState } from '../../domain/claim.js';
import type { KeptNames } from '../../domain/kept-names.js';
import type { Key } from '../../domain/key.js';
import type { Outcome } from '../../domain/mutation.js';
import type { LinkState, PushOutcome, SliceState } from '../../domain/push.js';
import type { Revision } from '../../domain/revision.js';
import type { CompactionOrder, CompactionStep } from './compaction.js';
import type { Epoch } from '../epochs.js';
import type { WireBatch } from './wire-batch.js';
import type { WireDecisions } from './wire-decisions.js';

export type CommitterOptions = Readonly<{ databaseFile: string; momentIntervalMs: number; keptNames: KeptNames }>;

export type CommitterThread = Pick<Worker, 'on' | 'postMessage' | 'terminate'>;

export type StartCommitter = (options: CommitterOptions) => Promise<CommitterThread>;

export type ToCommitter =
  | Readonly<{ kind: 'commit'; batch: WireBatch; nowMs: number }>
  | (CompactionOrder & Readonly<{ kind: 'compact' }>)
  /** Asks whether the disk accepts a write. */
  | Readonly<{ kind: 'probe' }>
  | Readonly<{ kind: 'close' }>;

export type Decided =
  | Readonly<{ kind: 'written'; revision: Revision; replaced: Revision }>
  | Extract<Outcome, { kind: 'refused' }>
  | Exclude<PushOutcome, { kind: 'written' | 'unavailable' }>
  | SweepProgress;

/**
 * `settled`: compaction is done, and the database file and the log are within their bounds
 * (wal-file.ts).
 */
export type CompactedStep = Omit<CompactionStep, 'bytes'> & Readonly<{ settled: boolean }>;

/**
 * A change that no request named: the rewrite of a deleted object's namesake, or a sweep's delete.
 */
export type Byproduct = Readonly<{ key: Key; revision: Revision; replaced: Revision }>;

/** How the change at `revision` moved the canonical path of its logical cluster. */
export type PathMove = MovedPath & Readonly<{ revision: Revision }>;

export type Committed = Readonly<{
  revision: Revision;
  /** One for each item of the batch, in order. */
  decided: readonly Decided[];
  /** Objects that were rewritten because their namesakes on another shard were deleted. */
  rewritten: readonly Byproduct[];
  /** Deletes by sweeps. */
  swept: readonly Byproduct[];
  moves: readonly PathMove[];
  shards: readonly ShardState[];
  slices: readonly SliceState[];
  links: readonly LinkState[];
  logBytes: number;
  /**
   * The epoch that began before the first of these changes, because the previous epoch might have
   * had too few counts left for them.
   */
  begun: Epoch | undefined;
}>;

export type FromCommitter =
  | Readonly<{ kind: 'ready' }>
  | (Omit<Committed, 'decided'> & Readonly<{ kind: 'committed'; decisions: WireDecisions; elapsedMs: number }>)
  /** Nothing of the batch was stored. */
  | Readonly<{ kind: 'failed'; message: string; code: string }>
  | Readonly<{ kind: 'not-compacted'; message: string; code: string }>
  | (CompactedStep & Readonly<{ kind: 'compacted'; logBytes: number; elapsedMs: number }>)
  | Readonly<{ kind: 'probed'; failure: string | undefined }>
  | Readonly<{ kind: 'closed' }>;
