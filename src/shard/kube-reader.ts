/**
 * Reads the objects of one collection of a shard: a sync of all of them, then what happens to them, until it is
 * stopped. Objects are spans of what arrived; they are never re-serialised.
 *
 *   nowhere ──▶ WatchList ──bookmark──▶ following ──stream ends──▶ following        a watch behind the last revision
 *      ▲  │                                │
 *      │  └─refused──▶ LIST, page by page ─┘
 *      └──────── expired · the sync broke off ◀──────────────────────               a new sync, from `begin`
 *
 * R1 What the taker did not take counts as not read: a place in the history moves on only once everything before it was taken.
 * R2 A full sync that breaks off begins again as a whole; what follows a broken watch does not.
 * R3 After a failure without progress we wait, longer each time; after progress we go on at once. A new sync always waits, longer
 *    each time while none of them lasts.
 * Bounds: one chunk of what arrives and the object that is arriving, `objectBytesMax`; nothing is read ahead of the taker.
 */
import type { Log } from '../diagnostics/log.js';
import { member, valueText } from '../domain/object-text.js';
import type { Clock } from '../domain/ports.js';
import { pause } from '../domain/pause.js';
import { backoffMs, type BackoffBounds } from '../sender/reconnect.js';
import { ResyncPace } from '../sender/resync-pace.js';
import { formatRead, type Collection, type ReadOptions } from './collection.js';
import type { Identities } from './identities.js';
import { refusalOf, type KubeClient, type KubeRequest, type ShardRefusal } from './kube-client.js';
import { lines } from './lines.js';
import { ListCutter } from './list-cutter.js';
import { reactTo } from './read-failure.js';
import { readSourceObject, type SourceObject } from './source-object.js';
import { cutWatchEvent } from './watch-event.js';

export type Read =
  /** All objects follow, up to `end`. */
  | Readonly<{ kind: 'begin' }>
  /** `changed`: it existed before, according to the shard. */
  | Readonly<{ kind: 'object'; object: SourceObject; changed: boolean }>
  /** `object`: its last state. */
  | Readonly<{ kind: 'deleted'; object: SourceObject }>
  | Readonly<{ kind: 'end'; revision: string }>;

/** What every reader of a shard shares. */
export type ReaderParts = Readonly<{ client: KubeClient; identities: Identities; clock: Clock; random: () => number; log: Log }>;

/** Where a reader is, and how it got there. */
type Place = {
  /** Everything up to here was taken; undefined: no sync was taken to its end. */
  revision: string | undefined;
  /** Whether the shard has refused to sync by watching just now. */
  listNext: boolean;
  /** False after a list expired between its pages: then it is read in one. */
  paged: boolean;
  /** Attempts in a row without progress. */
  failures: number;
  /** Whether the last request found that the type is absent. */
  absent: boolean;
  readonly pace: ResyncPace;
};

/** As client-go: five to ten minutes. */
const watchSecondsMin = 300;
/** Longer than a server takes for any answer it gives up on. */
const silenceMs = 75_000;
/** A watch that lasted so long was no failure, though nothing happened. */
const steadyMs = 1_000;
const pageObjects = 500;
const backoff: BackoffBounds = { backoffBaseMs: 800, backoffMaxMs: 30_000 };
/** A type that is not there now may never be. It is asked for about once a minute. */
const absentBackoff: BackoffBounds = { backoffBaseMs: 800, backoffMaxMs: 120_000 };
/** As much as client-go takes in one event. */
const objectBytesMax = 16 * 1024 * 1024;
const decoder = new TextDecoder();

export class KubeReader {
  readonly #parts: ReaderParts;
  readonly #collection: Collection;
  readonly #log: Log;
  #connected = false;

  constructor(parts: ReaderParts, collection: Collection) {
    this.#parts = parts;
    this.#collection = collection;
    const { cluster, group, version, resource } = collection;
    this.#log = parts.log.child({ cluster, group, version, resource });
  }

  /** Whether the shard is answering. */
  get connected(): boolean {
    return this.#connected;
  }

  /** Ends when `signal` is aborted. Batches are never empty. */
  async *read(signal: AbortSignal): AsyncGenerator<readonly Read[], void> {
    const place: Place = {
      revision: undefined,
      listNext: false,
      paged: true,
      failures: 0,
      absent: false,
      pace: new ResyncPace(this.#parts),
    };
    try {
      while (!signal.aborted) {
        place.failures += 1;
        let resyncMs = 0;
        try {
          yield* place.listNext ? this.#list(place, signal) : this.#watch(place, signal);
        } catch (error) {
          if (signal.aborted) return;
          const wasSynced = place.revision !== undefined;
          this.#react(place, error);
          if (wasSynced && place.revision === undefined) resyncMs = place.pace.failedMs();
        }
        const { failures, absent } = place;
        if (failures === 0 && resyncMs === 0) continue;
        this.#connected = false;
        const retryMs = failures === 0 ? 0 : backoffMs(failures, this.#parts.random, absent ? absentBackoff : backoff);
        await pause(this.#parts.clock, Math.max(resyncMs, retryMs), signal);
      }
    } finally {
      this.#connected = false;
    }
  }

  async *#watch(place: Place, signal: AbortSignal): AsyncGenerator<readonly Read[], void> {
    const timeoutSeconds = Math.round(watchSecondsMin * (1 + this.#parts.random()));
    const { revision } = place;
    const chunks = await this.#open(
      revision === undefined ? { kind: 'watch-list', timeoutSeconds } : { kind: 'watch', resourceVersion: revision, timeoutSeconds },
      { silenceMsMax: timeoutSeconds * 1_000 + silenceMs, signal },
    );
    this.#answered(place);
    const openedMs = this.#parts.clock.now();
    let syncing = revision === undefined;
    let reads: Read[] = syncing ? [{ kind: 'begin' }] : [];
    for await (const batch of lines(chunks, objectBytesMax)) {
      let reached = place.revision;
      let failure: ShardRefusal | undefined;
      for (const line of batch) {
        const event = cutWatchEvent(line);
        if (event.type === 'ERROR') failure = refusalOf(0, decoder.decode(event.object));
        if (failure !== undefined) break;
        const object = readSourceObject(event.object);
        if (event.type === 'BOOKMARK') {
          if (syncing && !endsInitialEvents(object)) continue;
          if (syncing) reads.push({ kind: 'end', revision: object.resourceVersion });
          syncing = false;
        } else if (event.type === 'DELETED') reads.push({ kind: 'deleted', object });
        else reads.push({ kind: 'object', object, changed: event.type === 'MODIFIED' });
        if (!syncing) reached = object.resourceVersion;
      }
      if (reads.length > 0) yield reads;
      reads = [];
      if (place.revision === undefined && reached !== undefined) place.pace.synced();
      place.revision = reached;
      if (failure !== undefined) throw failure;
      if (!syncing) place.failures = 0;
    }
    if (!syncing && this.#parts.clock.now() - openedMs >= steadyMs) place.failures = 0;
  }

  async *#list(place: Place, signal: AbortSignal): AsyncGenerator<readonly Read[], void> {
    let revision: string | undefined;
    let continueToken = '';
    let reads: Read[] = [{ kind: 'begin' }];
    do {
      const cutter = new ListCutter(objectBytesMax);
      const options = { kind: 'list', limit: place.paged ? pageObjects : 0, continueToken } as const;
      for await (const chunk of await this.#open(options, { silenceMsMax: silenceMs, signal })) {
        this.#answered(place);
        for (const item of cutter.push(chunk)) reads.push({ kind: 'object', object: readSourceObject(item), changed: false });
        if (reads.length > 0) yield reads;
        reads = [];
      }
      const envelope = cutter.end();
      // What happened since the first page comes with the watch after it.
      revision ??= envelope.resourceVersion;
      continueToken = envelope.continueToken;
    } while (continueToken !== '');
    yield [{ kind: 'end', revision }];
    place.pace.synced();
    Object.assign(place, { revision, listNext: false, paged: true, failures: 0 });
  }

  async #open(options: ReadOptions, rest: Omit<KubeRequest, 'path'>): Promise<AsyncGenerator<Uint8Array, void>> {
    const { client, identities } = this.#parts;
    const { identityOf } = this.#collection;
    const identity = identityOf === undefined ? '' : await identities.of(identityOf, rest.signal);
    return client.open({ path: formatRead(this.#collection, identity, options), ...rest });
  }

  #answered(place: Place): void {
    this.#connected = true;
    if (place.absent) this.#log.info('shard.type.served');
    place.absent = false;
  }

  #react(place: Place, error: unknown): void {
    const asked = place.listNext ? 'list' : place.revision === undefined ? 'watch-list' : 'watch';
    const reaction = reactTo(error, asked);
    place.listNext = reaction === 'list';
    if (reaction === 'list') place.failures = 0;
    if (reaction === 'resync' && asked === 'list') place.paged = false;
    if (reaction === 'resync' || reaction === 'absent') place.revision = undefined;
    if (reaction === 'absent') return this.#absent(place, error);
    // Once is a stream that ended; twice is a problem, and is logged once.
    if (place.failures === 2) this.#log.warn('shard.read.failed', { asked, reaction, error });
    else this.#log.debug('shard.read.failed', { asked, reaction, error });
  }

  #absent(place: Place, error: unknown): void {
    const { identityOf } = this.#collection;
    if (identityOf !== undefined) this.#parts.identities.forget(identityOf);
    if (!place.absent) this.#log.info('shard.type.absent', { why: error instanceof Error ? error.message : String(error) });
    place.absent = true;
  }
}

function endsInitialEvents({ text }: SourceObject): boolean {
  const found = member(text.annotations, 'k8s.io/initial-events-end');
  return found !== undefined && valueText(text.bytes, found) === '"true"';
}
