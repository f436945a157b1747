/**
 * A shard's pusher: it connects to a cache at once, syncs its slices, and then sends changes, through a lane of the store as a
 * shard's session does. Whatever is not acknowledged it sends again, wherever it connects next.
 *
 * It syncs the slice of a declared type only once the declaration is acknowledged: a cache refuses it before.
 */
import { Notifier } from '../../src/sender/notifier.js';
import { parseCanonicalPath } from '../../src/domain/cluster.js';
import type { ShardState } from '../../src/domain/claim.js';
import type { Key } from '../../src/domain/key.js';
import { pause } from '../../src/domain/pause.js';
import type { Clock, PushLane } from '../../src/domain/ports.js';
import type { Term, Push, PushOutcome, Speaker } from '../../src/domain/push.js';
import { formatResource, type Resource } from '../../src/domain/resource.js';
import type { ShardName } from '../../src/domain/shard.js';
import { formatSlice, type Slice } from '../../src/domain/slice.js';
import { declaredBy, metadataOf, pathAnnotation, textOfKey, type ModelObject } from './model-rule.js';
import { ShardTruth } from './shard-truth.js';
import type { PartyPlace, SimParty } from './sim-party.js';

export type SimPusherOptions = Readonly<{ shard: ShardName; process: string; resources: readonly Resource[] }>;

const pushesAtOnce = 256;
const comeAgainMs = 100;

export class SimPusher implements SimParty {
  readonly shard: ShardName;
  readonly process: string;
  /** What the shard holds, and held. */
  readonly truth = new ShardTruth();
  readonly resources: readonly Resource[];
  #term: Term = 0;
  /** When it was given its term, and the id of the cache that gave it. */
  givenMs = 0;
  origin = '';
  /** What the shard holds now, by the text of the key. */
  readonly #objects = new Map<string, ModelObject>();
  /** What has changed and is not acknowledged. */
  readonly #dirty = new Map<string, Key>();
  readonly #dirtySinceMs = new Map<string, number>();
  #time: Pick<Clock, 'now'> | undefined;
  /** Types, as text, whose declaration the cache has and whose slice it was sent in full. */
  readonly #declared = new Set<string>();
  readonly #notifier = new Notifier();
  #session = new AbortController();
  #isFenced = false;
  #isReplaced = false;
  /** A resourceVersion of the cache that acknowledged last. */
  #position = '';
  /** It holds the shard at the cache where it is. */
  #isThere = false;
  #isSynced = false;
  /** Of the session that is open. */
  #connected: AbortSignal | undefined;

  constructor({ shard, process, resources }: SimPusherOptions) {
    this.shard = shard;
    this.process = process;
    this.resources = resources;
  }

  /** The term that a cache gave it last. */
  get term(): Term {
    return this.#term;
  }

  get #by(): Speaker {
    return { kind: 'pusher', term: this.#term };
  }

  get objects(): readonly ModelObject[] {
    return [...this.#objects.values()];
  }

  /** A higher claim has the shard: it never pushes again. */
  get isFenced(): boolean {
    return this.#isFenced;
  }

  /** The cache it is connected to has acknowledged everything. */
  get isQuiet(): boolean {
    return this.#isFenced || (this.#isSynced && this.#due().length === 0 && this.#undeclared().length === 0);
  }

  get isConnected(): boolean {
    return this.#isSynced && this.#connected?.aborted === false;
  }

  lagMs(resource: Resource): number | undefined {
    const text = formatResource(resource);
    if (!this.resources.some((each) => formatResource(each) === text)) return undefined;
    const sinceMs = [...this.#dirty].flatMap(([name, key]) =>
      formatResource(key.resource) === text ? [this.#dirtySinceMs.get(name) ?? 0] : [],
    );
    return this.#time === undefined || sinceMs.length === 0 ? 0 : this.#time.now() - Math.min(...sinceMs);
  }

  begin(time: Pick<Clock, 'now'>): void {
    if (this.#time !== undefined) return;
    this.#time = time;
    for (const name of this.#dirtySinceMs.keys()) this.#dirtySinceMs.set(name, time.now());
    this.truth.begin(time);
  }

  put(object: ModelObject): void {
    this.#objects.set(textOfKey(object.key), object);
    this.truth.set(object.key, object);
    this.#touch(object.key);
  }

  remove(key: Key): void {
    this.#objects.delete(textOfKey(key));
    this.truth.set(key, undefined);
    this.#touch(key);
  }

  /** Connects to a cache, and leaves the one before. Resolves when that is over; never if the cache dies. */
  async run(place: PartyPlace): Promise<void> {
    this.leave();
    const { signal } = this.#session;
    while (!signal.aborted && !this.#isFenced) {
      this.#isReplaced = false;
      this.#isThere = false;
      // As the server ends a session whose shard has moved elsewhere.
      const origins = place.store.follow(({ shards }) => {
        for (const state of shards) if (state.shard === this.shard && this.#isThere && isOthers(state, this.#term)) this.#fence(state);
      });
      this.#connected = signal;
      await this.#connect(place, signal);
      if (this.#connected === signal) this.#connected = undefined;
      origins.cancel();
      // Comes back as a sender does when asked to; any other end is the cache's.
      if (!this.#isReplaced) return;
      await pause(place.clock, comeAgainMs, signal);
    }
  }

  async #connect({ store, clock }: PartyPlace, signal: AbortSignal): Promise<void> {
    const lane = store.lane();
    const { shard, process } = this;
    const [decided] =
      (await this.#push(lane, [{ kind: 'acquire', shard, process, term: this.#term, nowMs: clock.wallMs() }], signal)) ?? [];
    if (decided?.kind !== 'acquired') return;
    const { term } = decided;
    if (term !== this.#term) [this.origin, this.givenMs] = [store.cacheId, this.#time?.now() ?? 0];
    this.#term = term;
    this.#isThere = true;
    // If the disk there is older, changes it had acknowledged are lost: the last acknowledged position shows that, and everything is resynced.
    const isOurs = this.#position === '' || store.locate(this.#position).kind === 'ours';
    const known = isOurs ? await store.slices() : [];
    const synced = new Set(known.filter((state) => state.syncedTerm === term).map(({ slice }) => formatSlice(slice)));
    this.#declared.clear();
    for (const resource of this.resources.filter(({ identity }) => identity === '')) {
      const slice = { shard, resource };
      if (!synced.has(formatSlice(slice)) && !(await this.#sync(lane, slice, signal))) return;
    }
    this.#isSynced = true;
    this.#position = store.format(store.published);
    while (!signal.aborted && !this.#isFenced && !this.#isReplaced) {
      const seen = this.#notifier.notified;
      const taken = this.#due().slice(0, pushesAtOnce);
      const [undeclared] = this.#undeclared();
      if (taken.length === 0 && undeclared !== undefined) {
        this.#declared.add(formatResource(undeclared));
        if (!(await this.#sync(lane, { shard, resource: undeclared }, signal))) return;
      } else if (taken.length === 0) await this.#notifier.after(seen, signal);
      else if (!(await this.#send(lane, taken, signal))) return;
      this.#position = store.format(store.published);
    }
  }

  leave(): void {
    this.#session.abort();
    this.#session = new AbortController();
    this.#isSynced = false;
  }

  /** What may be sent now: nothing of undeclared types. */
  #due(): readonly (readonly [string, Key])[] {
    return [...this.#dirty].filter(([, { resource }]) => resource.identity === '' || this.#declared.has(formatResource(resource)));
  }

  /** Types that are declared now, and of which nothing was sent yet. */
  #undeclared(): readonly Resource[] {
    const declared = declaredBy(this.objects);
    for (const text of this.#declared) if (!declared.has(text)) this.#declared.delete(text);
    return this.resources.filter((resource) => declared.has(formatResource(resource)) && !this.#declared.has(formatResource(resource)));
  }

  #touch(key: Key): void {
    // A new object each time, so that the acknowledgement of one under way does not settle this one.
    const name = textOfKey(key);
    if (!this.#dirty.has(name)) this.#dirtySinceMs.set(name, this.#time?.now() ?? 0);
    this.#dirty.set(name, { ...key });
    this.#notifier.notify();
  }

  async #sync(lane: PushLane, slice: Slice, signal: AbortSignal): Promise<boolean> {
    const by = this.#by;
    const states = this.objects.filter(({ key }) => formatSlice(key) === formatSlice(slice)).map((object) => this.#upsertOf(object));
    let isEnded = false;
    while (!isEnded) {
      const received = await this.#push(
        lane,
        [{ kind: 'begin', slice, by }, ...states, { kind: 'end', slice, by, filterHash: '' }],
        signal,
      );
      if (received === undefined) return false;
      // A claim that came in between voided the sync, so the session begins it again.
      isEnded = received.at(-1)?.kind !== 'unbegun';
    }
    return true;
  }

  async #send(lane: PushLane, taken: readonly (readonly [string, Key])[], signal: AbortSignal): Promise<boolean> {
    const pushes = taken.map(([text, key]): Push => {
      const object = this.#objects.get(text);
      return object === undefined ? { kind: 'retract', key, by: this.#by } : this.#upsertOf(object);
    });
    if ((await this.#push(lane, pushes, signal)) === undefined) return false;
    for (const [text, key] of taken) if (this.#dirty.get(text) === key) this.#dirty.delete(text);
    return true;
  }

  /** The outcomes; undefined: the connection is over. */
  async #push(lane: PushLane, pushes: readonly Push[], signal: AbortSignal): Promise<readonly PushOutcome[] | undefined> {
    const received: PushOutcome[] = [];
    for (let at = 0; at < pushes.length; at += pushesAtOnce) {
      await lane.room();
      const outcomes: readonly PushOutcome[] = await lane.push(pushes.slice(at, at + pushesAtOnce));
      for (const outcome of outcomes) if (outcome.kind === 'fenced') this.#fence(outcome.holder);
      if (signal.aborted || outcomes.some(({ kind }) => kind === 'fenced' || kind === 'unavailable')) return undefined;
      received.push(...outcomes);
    }
    return received;
  }

  /** It comes again if its own process is known elsewhere. */
  #fence(holder: ShardState | undefined): void {
    if (holder?.process === this.process && !holder.removed) this.#isReplaced = true;
    else this.#isFenced = true;
    this.#isSynced = false;
    this.#notifier.notify();
  }

  #upsertOf({ key, body }: ModelObject): Push {
    const path = metadataOf(body).annotations[pathAnnotation];
    return { kind: 'upsert', key, body, path: path === undefined ? undefined : parseCanonicalPath(path), by: this.#by };
  }
}

/** A removal of an earlier process, published before its own claim, does not concern it. */
function isOthers({ via, term }: ShardState, own: Term): boolean {
  return term > own || (term === own && via !== 'local');
}
