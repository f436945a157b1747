/**
 * The change log as one link reads it: all changes after a position, in rising revision, in chunks.
 *
 *   revision ──────┬───────────────┬─────────▶
 *        position ─┘  from the log └─ published
 *                     or as published
 *
 * A1 No hole and no repeat: a chunk begins where the previous one ended.
 * A2 No key occurs twice in a chunk, so sending a whole chunk again changes nothing.
 * A3 A revision that moves canonical paths ends its chunk.
 * A4 A chunk holds whole revisions, because all changes of a transaction in etcd have one revision.
 *
 * While the link keeps up, the tail uses the commits as they are published, and does not read the
 * log.
 *
 * Bounds: `liveChangesMax` changes, and `liveBytesMax` of their bodies, wait in memory. Beyond that
 * the tail forgets them and reads the log, at the pace of the link.
 */
import { bytesOf, type Change, type Commit } from '../../domain/change.js';
import type { Subscription } from '../../domain/ports.js';
import type { Commits, History, LogChunk, Revisions } from '../../domain/store-port.js';
import { formatKey, type Key } from '../../domain/key.js';
import { isResourceVersion, type Revision } from '../../domain/revision.js';
import type { ShardName } from '../../domain/shard.js';

export type TailParts = Readonly<{
  history: Pick<History, 'everyChange'>;
  /** Whether changes of the key are sent. Other changes need not be read. */
  isWanted: (key: Key) => boolean;
  revisions: Pick<Revisions, 'published'>;
  commits: Commits;
  notify: () => void;
}>;

const liveChangesMax = 4_096;
const liveBytesMax = 16 * 1024 * 1024;

type Run = LogChunk & Readonly<{ after: Revision }>;

type LiveRun = Run & Readonly<{ bytes: number }>;

export class Tail {
  readonly #parts: TailParts;
  readonly #subscription: Subscription;
  #position: Revision;
  /** Consecutive commits. The first follows directly on the last change given out or read. */
  #live: LiveRun[] = [];
  #liveChanges = 0;
  #liveBytes = 0;
  #seen: Revision;
  /** Changes that were read from the log or taken from `#live`, and not given out yet. */
  #run: Run | undefined;
  #reading: AsyncIterator<LogChunk> | undefined;
  #readingUpTo: Revision = 0;
  /** For each shard whose changes were left out of the present run: the key of one such change. */
  readonly #leftOut = new Map<ShardName, Key>();

  constructor(parts: TailParts, position: Revision) {
    this.#parts = parts;
    this.#position = position;
    this.#seen = parts.revisions.published;
    this.#subscription = parts.commits.subscribe((commit) => this.#follow(commit));
  }

  /** All changes up to here were given out. */
  get position(): Revision {
    return this.#position;
  }

  get isBehind(): boolean {
    return this.#position < this.#parts.revisions.published;
  }

  /**
   * Returns the next chunk, which may have no changes. Throws Refused(Expired) if the log does not
   * reach back far enough.
   */
  async next(): Promise<LogChunk> {
    this.#rereadIfWanted();
    this.#run ??= this.#takeLive() ?? (await this.#read());
    const { changes, upTo } = this.#run;
    const length = distinctPrefix(changes);
    if (length === changes.length) {
      this.#run = undefined;
      this.#position = upTo;
      return { changes, upTo };
    }
    const given = changes.slice(0, length);
    this.#position = given.at(-1)?.revision ?? this.#position;
    this.#run = { after: this.#position, upTo, changes: changes.slice(length) };
    return { changes: given, upTo: this.#position };
  }

  /** Continues after `position`, and skips the changes before it. */
  jump(position: Revision): void {
    this.#stopReading();
    this.#run = undefined;
    this.#forgetLive();
    this.#position = position;
  }

  close(): void {
    this.#subscription.cancel();
    this.#stopReading();
  }

  #follow({ revision, changes }: Commit): void {
    const bytes = changes.reduce((sum, change) => sum + bytesOf(change), 0);
    this.#live.push({ after: this.#seen, upTo: revision, changes, bytes });
    this.#liveChanges += changes.length;
    this.#liveBytes += bytes;
    this.#seen = revision;
    if (this.#liveChanges > liveChangesMax || this.#liveBytes > liveBytesMax) this.#forgetLive();
    this.#parts.notify();
  }

  #takeLive(): Run | undefined {
    if (this.#reading !== undefined) return undefined;
    for (let run = this.#live[0]; run !== undefined && run.after <= this.#position; run = this.#live[0]) {
      this.#live.shift();
      this.#liveChanges -= run.changes.length;
      this.#liveBytes -= run.bytes;
      if (run.upTo <= this.#position) continue;
      // If the whole commit is due, return the array that other links get too. Results that were
      // computed for it then serve all of them.
      const isWhole = run.after === this.#position;
      return isWhole ? run : { ...run, changes: run.changes.filter(({ revision }) => revision > this.#position) };
    }
    return undefined;
  }

  async #read(): Promise<Run> {
    const after = this.#position;
    if (this.#reading === undefined) {
      this.#readingUpTo = this.#live[0]?.after ?? this.#parts.revisions.published;
      this.#reading = this.#parts.history
        .everyChange({ after, upTo: this.#readingUpTo }, (key) => this.#isWanted(key))
        [Symbol.asyncIterator]();
    }
    const reading = this.#reading;
    const { done, value } = await reading.next();
    if (done !== true) return { after, ...value };
    if (this.#reading === reading) this.#reading = undefined;
    return { after, upTo: this.#readingUpTo, changes: [] };
  }

  /**
   * If a key that was left out is wanted now, reads the rest of the run again: the rest may lack
   * changes of that key.
   */
  #rereadIfWanted(): void {
    if (this.#run === undefined) return this.#leftOut.clear();
    if (![...this.#leftOut.values()].some((key) => this.#parts.isWanted(key))) return;
    this.#stopReading();
    this.#run = undefined;
    this.#leftOut.clear();
  }

  #isWanted(key: Key): boolean {
    const isWanted = this.#parts.isWanted(key);
    if (!isWanted) this.#leftOut.set(key.shard, key);
    return isWanted;
  }

  #forgetLive(): void {
    this.#live = [];
    this.#liveChanges = 0;
    this.#liveBytes = 0;
  }

  #stopReading(): void {
    void this.#reading?.return?.();
    this.#reading = undefined;
  }
}

/**
 * Counts the changes of the next chunk. The chunk ends before a revision that repeats a key, and
 * after the first revision that moves a path.
 */
function distinctPrefix(changes: readonly Change[]): number {
  if (changes.length <= 1) return changes.length;
  const known = prefixes.get(changes) ?? findDistinctPrefix(changes);
  prefixes.set(changes, known);
  return known;
}

/** Memoizes a pure function: many links get the same commits. */
const prefixes = new WeakMap<readonly Change[], number>();

function findDistinctPrefix(changes: readonly Change[]): number {
  const keys = new Set<string>();
  let [start, hasMoved] = [0, false];
  for (const [i, { key, revision, movedPath }] of changes.entries()) {
    if (revision !== changes[start]?.revision) {
      if (hasMoved) return i;
      start = i;
    }
    const text = formatKey(key);
    // No transaction changes a key twice. If one did, its changes would be given out together.
    if (keys.has(text) && start > 0) return start;
    keys.add(text);
    hasMoved ||= movedPath !== undefined;
  }
  return changes.length;
}

/**
 * Where a link resumes: the revision here of the last position that the other end received, which
 * it sends back. A peer may send any text.
 *
 * Undefined if the log cannot give the changes after it: the position is older than the log, or of
 * another store or another life of this one.
 */
export function locatePosition(revisions: Revisions, position: string): Revision | undefined {
  if (!isResourceVersion(position)) return undefined;
  const located = revisions.locatePosition(position);
  return located.kind === 'ours' && located.revision >= revisions.compacted ? located.revision : undefined;
}
