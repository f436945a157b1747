/**
 * Keeps the changes of the last minutes in memory, for watches that resume and for lists at an
 * earlier revision. etcd has these changes, too, but sends a late watch only a thousand revisions
 * in a tenth of a second.
 *
 *   compacted ──┬──────────┬───────────┬──▶ newest        Changes above `compacted` are here, each
 *            dropped:   one revision may have several     with what it replaced.
 *            too old,   changes: they are dropped
 *            too many   together
 *
 * Bounds: `ageMs`, `changesMax`, and `bytesMax` of the bodies that changes brought and replaced.
 * Until `changesMax` or `bytesMax` is exceeded by a twentieth, the window keeps changes above
 * `heldRevision` for readers.
 */
import { entryOf } from '../../domain/base/entry-of.js';
import { bytesOf, firstAbove, type Change } from '../../domain/change.js';
import type { Key } from '../../domain/key.js';
import { formatResource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import { matches, type Scope } from '../../domain/scope.js';
import type { History, LogChunk, LogType, Touch } from '../../domain/store-port.js';
import { assertCovered } from '../compactor.js';
import { KeyIndex } from './key-index.js';

export type WindowLimits = Readonly<{ ageMs: number; changesMax: number; bytesMax: number }>;

type Range = Readonly<{ after: Revision; upTo: Revision }>;

/** Bounds of one chunk, which takes one turn of the event loop. */
const chunkChangesMax = 256;
const chunkBytesMax = 256 * 1024;
/** From this share of `changesMax` or `bytesMax` on, trimming ignores `heldRevision`. */
const urgentExcess = 1.05;
/** See `isWorthACopy`. */
const slack = 1_024;
/** How many changes one turn drops, besides the rest of the last revision. */
const trimmedAtOnce = 1_000;

/** Changes by ascending revision. The first `dropped` of them have been dropped. */
type Run = { changes: (Change | undefined)[]; dropped: number };

/** The changes of one key, ascending. */
export type ChangedKey = Run & Readonly<{ key: Key }>;

const none = new KeyIndex<ChangedKey>();

export class HistoryWindow implements History {
  readonly #limits: WindowLimits;
  readonly #all: Run = { changes: [], dropped: 0 };
  readonly #byType = new Map<string, Run>();
  readonly #byKey = new KeyIndex<ChangedKey>();
  /** The arrival time of each batch, with its last revision, ascending. */
  #times: Readonly<{ revision: Revision; atMs: number }>[] = [];
  #timesLeft = 0;
  #compacted: Revision;
  /**
   * Whether several dropped changes had the revision `compacted`; true at first, because that is
   * unknown.
   */
  #isCompactedShared = true;
  #bytes = 0;
  /** The bytes of each change's new and replaced body. */
  readonly #bytesOf = new WeakMap<Change, number>();

  constructor(from: Revision, limits: WindowLimits) {
    this.#compacted = from;
    this.#limits = limits;
  }

  /** Every change that is kept is above this revision. */
  get compacted(): Revision {
    return this.#compacted;
  }

  /**
   * A client at `compacted` may lack some changes of that revision, if the revision had several.
   */
  remembers(after: Revision): boolean {
    return after >= (this.#isCompactedShared ? this.#compacted + 1 : this.#compacted);
  }

  get size(): number {
    return this.#all.changes.length - this.#all.dropped;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the window exceeds `changesMax` or `bytesMax`. */
  get isFull(): boolean {
    return this.size > this.#limits.changesMax || this.#bytes > this.#limits.bytesMax;
  }

  /**
   * Adds whole revisions, ascending. `replacedBytes`: the size of the body that each change
   * replaced.
   */
  add(changes: readonly Change[], nowMs: number, replacedBytes: ReadonlyMap<Change, number> = new Map()): void {
    for (const change of changes) {
      this.#bytesOf.set(change, bytesOf(change) + (replacedBytes.get(change) ?? 0));
      this.#all.changes.push(change);
      entryOf(this.#byType, formatResource(change.key.resource), (): Run => ({ changes: [], dropped: 0 })).changes.push(change);
      const known = this.#byKey.get(change.key);
      if (known === undefined) this.#byKey.set({ key: change.key, changes: [change], dropped: 0 });
      else known.changes.push(change);
      this.#bytes += this.#heldBytes(change);
    }
    const last = changes.at(-1);
    if (last !== undefined) this.#times.push({ revision: last.revision, atMs: nowMs });
  }

  /**
   * Drops changes that are too old or too many, at most `trimmedAtOnce`. Stops at `heldRevision`
   * unless `changesMax` or `bytesMax` is exceeded by a twentieth. Returns whether more must be
   * dropped.
   */
  trim(nowMs: number, heldRevision: Revision): boolean {
    const { ageMs, changesMax, bytesMax } = this.#limits;
    const isUrgent = this.isFull && (this.size >= changesMax * urgentExcess || this.#bytes >= bytesMax * urgentExcess);
    const aged = this.#agedRevision(nowMs - ageMs);
    let [number, bytes, upTo, isMore] = [this.size, this.#bytes, this.#compacted, false];
    for (const change of within(this.#all, { after: 0, upTo: isUrgent ? Infinity : heldRevision })) {
      if (change.revision > upTo) {
        if (number <= changesMax && bytes <= bytesMax && change.revision > aged) break;
        isMore = this.size - number >= trimmedAtOnce;
        if (isMore) break;
        upTo = change.revision;
      }
      number -= 1;
      bytes -= this.#heldBytes(change);
    }
    this.#compactTo(upTo);
    return isMore;
  }

  /** Returns whole revisions only. */
  async changes(type: LogType, range: Range, isWanted: (key: Key) => boolean): Promise<LogChunk> {
    this.#assertCovered(range.after);
    return chunkOf(merged(this.#runsOf(type), range), range, ({ key }) => isWanted(key));
  }

  async *everyChange({ after, upTo }: Range, isWanted: (key: Key) => boolean): AsyncGenerator<LogChunk> {
    for (let position = after; position < upTo;) {
      this.#assertCovered(position);
      const rest = { after: position, upTo };
      const chunk = chunkOf(within(this.#all, rest), rest, ({ key, movedPath }) => isWanted(key) || movedPath !== undefined);
      yield chunk;
      position = chunk.upTo;
    }
  }

  /** The changes of a key above a revision, ascending. */
  changesOf(key: Key, after: Revision): Iterable<Change> {
    const known = this.#byKey.get(key);
    return known === undefined ? [] : within(known, { after, upTo: Infinity });
  }

  /** The index of all changed keys; empty if nothing of the type has changed above the revision. */
  changedKeys(type: LogType, after: Revision): KeyIndex<ChangedKey> {
    return this.#runsOf(type).some(({ changes }) => (changes.at(-1)?.revision ?? 0) > after) ? this.#byKey : none;
  }

  /** The changes above a revision that moved a canonical path, ascending. */
  movesSince(after: Revision): readonly Change[] {
    return [...within(this.#all, { after, upTo: Infinity })].filter(({ movedPath }) => movedPath !== undefined);
  }

  async *touched(scope: Scope, range: Range): AsyncGenerator<readonly Touch[]> {
    if (range.after >= range.upTo) return;
    this.#assertCovered(range.after);
    const found: Touch[] = [];
    for (const change of merged(this.#runsOf(scope), range)) {
      const { key, kind } = change;
      if (matches(scope, key)) found.push({ key, kind, object: () => (change.kind === 'put' ? change.object : undefined) });
    }
    if (found.length > 0) yield found.toReversed();
  }

  /** Several objects can change at one revision, by another program's transaction. */
  hasSeveral(scope: Scope, revision: Revision): boolean {
    if (!this.remembers(revision)) return true;
    let number = 0;
    for (const { key } of merged(this.#runsOf(scope), { after: revision - 1, upTo: revision })) {
      if (matches(scope, key)) number += 1;
      if (number === 2) return true;
    }
    return false;
  }

  #assertCovered(position: Revision): void {
    assertCovered({ compacted: this.#compacted, format: String }, position);
  }

  #runsOf({ group, resource, identity }: LogType): readonly Run[] {
    if (identity !== '*') return [this.#byType.get(formatResource({ group, resource, identity })) ?? []].flat();
    const start = formatResource({ group, resource, identity: '' });
    return [...this.#byType].flatMap(([type, run]) => (type.startsWith(start) ? [run] : []));
  }

  #compactTo(revision: Revision): void {
    if (revision <= this.#compacted) return;
    this.#compacted = revision;
    this.#isCompactedShared = firstInRun(this.#all, revision) - firstInRun(this.#all, revision - 1) > 1;
    for (const change of within(this.#all, { after: 0, upTo: revision })) {
      this.#bytes -= this.#heldBytes(change);
      const known = this.#byKey.get(change.key);
      if (known === undefined) continue;
      drop(known, revision);
      if (known.dropped === known.changes.length) this.#byKey.delete(known.key);
    }
    drop(this.#all, revision);
    for (const [type, run] of this.#byType) {
      drop(run, revision);
      if (run.dropped === run.changes.length) this.#byType.delete(type);
    }
    while ((this.#times[this.#timesLeft]?.revision ?? Infinity) <= revision) this.#timesLeft += 1;
    if (!isWorthACopy(this.#timesLeft, this.#times.length)) return;
    this.#times = this.#times.slice(this.#timesLeft);
    this.#timesLeft = 0;
  }

  #heldBytes(change: Change): number {
    return this.#bytesOf.get(change) ?? 0;
  }

  #agedRevision(beforeMs: number): Revision {
    let revision = this.#compacted;
    for (let at = this.#timesLeft; (this.#times[at]?.atMs ?? Infinity) < beforeMs; at += 1) revision = this.#times[at]!.revision;
    return revision;
  }
}

/** The change that replaced the object that the key had at the revision. */
export function firstChangeAbove(known: ChangedKey, revision: Revision): Change | undefined {
  return known.changes[firstInRun(known, revision)];
}

/**
 * Copies are rare: all changes of an array must have been dropped, or at least `slack` changes and
 * an eighth of the array.
 */
function isWorthACopy(left: number, length: number): boolean {
  return left === length || (left >= slack && left * 8 >= length);
}

function firstInRun({ changes, dropped }: Run, revision: Revision): number {
  return firstAbove(changes, revision, dropped);
}

function drop(run: Run, upTo: Revision): void {
  const { dropped } = run;
  run.dropped = firstInRun(run, upTo);
  if (isWorthACopy(run.dropped, run.changes.length)) {
    run.changes = run.changes.slice(run.dropped);
    run.dropped = 0;
    // The array would otherwise keep the dropped changes and their bodies in memory.
  } else run.changes.fill(undefined, dropped, run.dropped);
}

function* within(run: Run, { after, upTo }: Range): Iterable<Change> {
  for (let at = firstInRun(run, after); ; at += 1) {
    const change = run.changes[at];
    if (change === undefined || change.revision > upTo) return;
    yield change;
  }
}

/** Merges the runs of several identities of one resource by ascending revision. */
function* merged(runs: readonly Run[], { after, upTo }: Range): Iterable<Change> {
  const heads = runs.map((run) => ({ changes: run.changes, at: firstInRun(run, after) }));
  for (;;) {
    let first: (typeof heads)[number] | undefined;
    let next: Change | undefined;
    for (const head of heads) {
      const change = head.changes[head.at];
      if (change !== undefined && (next === undefined || change.revision < next.revision)) [first, next] = [head, change];
    }
    if (first === undefined || next === undefined || next.revision > upTo) return;
    first.at += 1;
    yield next;
  }
}

function chunkOf(found: Iterable<Change>, { upTo }: Range, isWanted: (change: Change) => boolean): LogChunk {
  const changes: Change[] = [];
  let [examined, bytes, last] = [0, 0, 0];
  for (const change of found) {
    if (change.revision !== last && (examined >= chunkChangesMax || bytes >= chunkBytesMax)) return { changes, upTo: last };
    examined += 1;
    last = change.revision;
    if (!isWanted(change)) continue;
    changes.push(change);
    bytes += bytesOf(change);
  }
  return { changes, upTo };
}
