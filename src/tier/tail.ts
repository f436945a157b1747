/**
 * The running end of the change log as one link reads it: all changes after a position, in rising revision, in chunks.
 *
 *   revision ──────┬───────────────┬─────────▶     A1 No hole and no repeat: a chunk begins after the last one.
 *        position ─┘  from the log └─ published    A2 No key stands twice in a chunk: sent again as a whole, it changes nothing.
 *                     or as published              A3 A revision that moves canonical paths ends its chunk.
 *                                                  A4 A chunk holds whole revisions: a transaction in etcd has one, whatever it changes.
 *
 * While the link keeps up, it uses the commits themselves as they are published, and does not read the log. Bounds: `liveChangesMax`
 * changes and `liveBytesMax` of their bodies wait so; beyond that they are forgotten and read from the log, at the pace of the link.
 */
import type { Change, Commit } from '../domain/change.js';
import type { Subscription } from '../domain/ports.js';
import type { Commits, History, LogChunk, Revisions } from '../domain/store-port.js';
import type { Key } from '../domain/key.js';
import type { Revision } from '../domain/revision.js';
import type { ShardName } from '../domain/shard.js';
import { formatSlice } from '../domain/slice.js';

export type TailChunk = Readonly<{ changes: readonly Change[]; upTo: Revision }>;

export type TailParts = Readonly<{
  history: Pick<History, 'everyChange'>;
  /** Whether changes of a key are sent at all: others are not even read. */
  isWanted: (key: Key) => boolean;
  revisions: Pick<Revisions, 'published'>;
  commits: Commits;
  /** There is more. */
  notify: () => void;
}>;

const liveChangesMax = 4_096;
const liveBytesMax = 16 * 1024 * 1024;

type Run = Readonly<{ after: Revision; upTo: Revision; changes: readonly Change[] }>;

type LiveRun = Run & Readonly<{ bytes: number }>;

export class Tail {
  readonly #parts: TailParts;
  readonly #subscription: Subscription;
  #position: Revision;
  /** Consecutive commits, the first right after what was given out or read. */
  #live: LiveRun[] = [];
  #liveChanges = 0;
  #liveBytes = 0;
  #seen: Revision;
  /** What was read or taken and not yet given out. */
  #run: Run | undefined;
  #reading: AsyncIterator<LogChunk> | undefined;
  #readingUpTo: Revision = 0;
  /** One key of each shard of which changes were left out of what was read and not given out. */
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

  /** The next chunk, which may be without changes. Throws Refused(Expired) when the log does not reach back far enough. */
  async next(): Promise<TailChunk> {
    this.#readAgain();
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

  /** Goes on after `position`; whatever lies before it is left out. */
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
    const bytes = changes.reduce((sum, change) => sum + (change.kind === 'put' ? change.object.body.bytes.length : 0), 0);
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
      // The very array that other links get, where all of it is due: what was computed for it holds for all of them.
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

  /** A key that was left out of a run given out in part, and is wanted by now, has its changes in the rest of it. */
  #readAgain(): void {
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

/** How many changes come before the revision that repeats a key, or up to the end of the first that moves a path. */
function distinctPrefix(changes: readonly Change[]): number {
  if (changes.length <= 1) return changes.length;
  const known = prefixes.get(changes) ?? findDistinctPrefix(changes);
  prefixes.set(changes, known);
  return known;
}

/** Remembers a pure function: many links get the same commits. */
const prefixes = new WeakMap<readonly Change[], number>();

function findDistinctPrefix(changes: readonly Change[]): number {
  const keys = new Set<string>();
  let [start, hasMoved] = [0, false];
  for (const [i, { key, revision, movedPath }] of changes.entries()) {
    if (revision !== changes[start]?.revision) {
      if (hasMoved) return i;
      start = i;
    }
    const text = `${formatSlice(key)}|${key.cluster}|${key.namespace}/${key.name}`;
    // No transaction changes a key twice; one that did would be given as it is.
    if (keys.has(text) && start > 0) return start;
    keys.add(text);
    hasMoved ||= movedPath !== undefined;
  }
  return changes.length;
}
