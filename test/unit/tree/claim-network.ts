/**
 * One shard in a network of caches that choose by domain/claim.ts and send each other claims, one
 * by one in random order. Parents change, links break, processes die, disks are lost or restored
 * from a copy, clocks differ, pushers and plain writers connect, and operators remove the shard. No
 * other part of the server is here, so thousands of networks run in a second.
 */
import { arrived, choose, compareClaims, decideClaim, type Choice, type GrantedTerm, type Offer } from '../../../src/domain/claim.js';
import { childNeighbour, type Neighbour } from '../../../src/domain/via.js';
import { shardName } from '../../support/objects.js';

const shard = shardName('amber');

type Disk = { id: string; parentId: string | undefined; choice: Choice | undefined };

type Cache = {
  readonly name: number;
  readonly skew: number;
  isUp: boolean;
  parent: number | undefined;
  disk: Disk;
  copies: Disk[];
  highest: GrantedTerm | undefined;
  readonly offers: Map<Neighbour, Offer>;
};

type Link = Readonly<{ child: number; parent: number; up: Offer[]; down: Offer[] }>;

/**
 * A pusher's process, and the cache that it is connected to until it is fenced. A welcome may have
 * been lost, so `term` may be older than its last one.
 */
type Pusher = { readonly process: string; term: number; at: number };

export class ClaimNetwork {
  readonly story: string[] = [];
  readonly #random: () => number;
  readonly #caches: readonly Cache[];
  readonly #links = new Map<number, Link>();
  #ids = 0;
  #now = 1_000;
  #processes = 0;
  readonly #pushers = new Set<Pusher>();

  constructor(size: number, random: () => number) {
    this.#random = random;
    this.#caches = Array.from({ length: size }, (_, name) => ({
      name,
      skew: this.#below(400) - 200,
      isUp: true,
      parent: undefined,
      disk: this.#blank(),
      copies: [],
      highest: undefined,
      offers: new Map<Neighbour, Offer>(),
    }));
  }

  /**
   * Runs `events`, then starts everything again and delivers every claim. Returns what is wrong, or
   * undefined.
   */
  run(events: number): string | undefined {
    for (let i = 0; i < events; i++) {
      this.#now += 1 + this.#below(50);
      this.#happen(this.#random(), this.#pick());
      for (let received = this.#below(12); received > 0; received--) this.#deliver();
    }
    for (const cache of this.#caches) if (!cache.isUp) this.#start(cache);
    for (let round = 0; round < 3; round++) for (const cache of this.#caches) this.#open(cache);
    for (let received = 0; this.#deliver(); received++) if (received > 100_000) return 'they never stop sending each other claims';
    // Pushers that lost their cache reconnect, and at least one stays.
    for (let round = 0; round <= this.#processes; round++) {
      for (const pusher of this.#pushers) this.#connectPusher(pusher, true);
      for (let received = 0; this.#deliver(); received++) if (received > 100_000) return 'they never stop sending each other claims';
    }
    return this.#wrong() ?? this.#wrongPusher();
  }

  #happen(which: number, cache: Cache): void {
    if (which < 0.3) {
      this.#close(cache.name);
      cache.parent = this.#random() < 0.1 ? undefined : this.#pick().name;
      if (cache.parent === cache.name) cache.parent = undefined;
      this.story.push(`${cache.name} follows ${cache.parent}`);
      this.#open(cache);
    } else if (which < 0.4) this.#close(cache.name);
    else if (which < 0.6) for (const each of this.#caches) this.#open(each);
    else if (which < 0.66) this.#claim(cache);
    else if (which < 0.75) {
      if (cache.isUp) this.#stop(cache);
      else this.#start(cache);
    } else if (which < 0.79) cache.copies.push({ ...cache.disk });
    else if (which < 0.83) this.#restore(cache, cache.copies[this.#below(cache.copies.length)]);
    else if (which < 0.85) this.#restore(cache, this.#blank());
  }

  /** Adds a new pusher, a pusher that moved from another cache, a plain writer, or an operator. */
  #claim(cache: Cache): void {
    if (!cache.isUp) return;
    const known = cache.disk.choice?.state;
    const after = Math.max(this.#now + cache.skew, (known?.term ?? 0) + 1);
    const [origin, how] = [cache.disk.id, this.#random()];
    const none = { shard, process: '', removed: false, origin, via: undefined, plain: false };
    this.story.push(`claim at ${cache.name}, ${how < 0.4 ? 'anew' : how < 0.6 ? 'moved' : how < 0.85 ? 'plain' : 'removed'}`);
    const pushers = [...this.#pushers];
    const moved = pushers[this.#below(pushers.length)];
    if (how < 0.4) {
      const pusher: Pusher = { process: `p${(this.#processes += 1)}`, term: 0, at: cache.name };
      this.#pushers.add(pusher);
      this.#connectPusher(pusher);
    } else if (how < 0.6 && moved !== undefined) this.#connectPusher(Object.assign(moved, { at: cache.name }));
    else if (how < 0.85) this.#set(cache, { ...none, term: (known?.term ?? 0) + 1, via: 'local', plain: true });
    else this.#set(cache, { ...none, term: after, removed: true });
  }

  /** A fenced process ends. A welcome may be lost, and its term with it. */
  #connectPusher(pusher: Pusher, isHeard = this.#random() < 0.8): void {
    const { process, term, at } = pusher;
    const cache = this.#cache(at);
    if (!cache.isUp) return;
    const known = cache.disk.choice?.state;
    const state = arrived(cache.disk.id, known, { shard, process, term, nowMs: this.#now + cache.skew });
    if (state === undefined) return void this.#pushers.delete(pusher);
    if (isHeard) pusher.term = state.term;
    if (state !== known) this.#set(cache, state);
  }

  #set(cache: Cache, state: Choice['state']): void {
    cache.disk.choice = { state, path: [], reached: state.via === 'local', held: false };
    this.#sendAll(cache);
  }

  #decide(cache: Cache): void {
    const { disk, highest, offers } = cache;
    const next = choose(disk.id, disk.choice, { shard, highest, offers });
    const before = disk.choice;
    const isSame = before !== undefined && next !== undefined && JSON.stringify(next) === JSON.stringify(before);
    if (next === undefined || isSame) return;
    if (before !== undefined && decideClaim(before.state, next.state) === 'refused')
      throw new Error('the committer refuses what was chosen');
    disk.choice = next;
    this.#sendAll(cache);
  }

  #sendAll(cache: Cache): void {
    for (const link of this.#links.values()) if (link.child === cache.name || link.parent === cache.name) this.#send(cache, link);
  }

  #send({ name, disk }: Cache, link: Link): void {
    if (disk.choice === undefined) return;
    const { state, path, reached, held } = disk.choice;
    const { term, process, removed, origin } = state;
    (link.child === name ? link.up : link.down).push({ term, process, removed, origin, path: [...path, disk.id], reached, held });
  }

  #deliver(): boolean {
    const ways = [...this.#links.values()].flatMap((link) => [
      { from: childNeighbour(`${link.child}`), to: link.parent, received: link.up },
      { from: 'parent' as const, to: link.child, received: link.down },
    ]);
    const waiting = ways.filter(({ received }) => received.length > 0);
    const way = waiting[this.#below(waiting.length)];
    const offer = way?.received.shift();
    if (way === undefined || offer === undefined) return false;
    const cache = this.#cache(way.to);
    if (offer.path.includes(cache.disk.id) && cache.disk.choice?.state.via !== way.from) cache.offers.delete(way.from);
    else cache.offers.set(way.from, offer);
    if (cache.highest === undefined || compareClaims(offer, cache.highest) > 0) cache.highest = offer;
    this.#decide(cache);
    return true;
  }

  /** Never opens a cycle: a cache refuses a child that is above it. */
  #open(child: Cache): void {
    const parent = child.parent === undefined ? undefined : this.#caches[child.parent];
    if (parent === undefined || !child.isUp || !parent.isUp || this.#links.has(child.name)) return;
    for (let above: number | undefined = parent.name; above !== undefined; above = this.#links.get(above)?.parent)
      if (above === child.name) return;
    const link: Link = { child: child.name, parent: parent.name, up: [], down: [] };
    this.#links.set(child.name, link);
    const { disk } = child;
    if (disk.parentId !== undefined && disk.parentId !== parent.disk.id && disk.choice?.state.via === 'parent')
      disk.choice = { state: { ...disk.choice.state, via: undefined }, path: [], reached: false, held: false };
    disk.parentId = parent.disk.id;
    this.story.push(`${child.name} is open to ${parent.name}`);
    this.#send(child, link);
    this.#send(parent, link);
  }

  #close(child: number): void {
    const link = this.#links.get(child);
    if (link === undefined) return;
    this.#links.delete(child);
    const [below, above] = [this.#cache(link.child), this.#cache(link.parent)];
    below.offers.delete('parent');
    above.offers.delete(childNeighbour(`${child}`));
    this.#decide(below);
    this.#decide(above);
  }

  #stop(cache: Cache): void {
    for (const { child, parent } of this.#links.values()) if (child === cache.name || parent === cache.name) this.#close(child);
    cache.isUp = false;
    this.story.push(`${cache.name} stops`);
  }

  /** Paths and `reached` are not on the disk. */
  #start(cache: Cache): void {
    const { disk } = cache;
    cache.isUp = true;
    cache.highest = undefined;
    cache.offers.clear();
    if (disk.choice !== undefined && disk.choice.state.via !== 'local')
      disk.choice = { ...disk.choice, path: [], reached: false, held: false };
    for (const pusher of this.#pushers) if (pusher.at === cache.name) this.#connectPusher(pusher);
    this.story.push(`${cache.name} starts with ${JSON.stringify(disk)}`);
  }

  #restore(cache: Cache, disk: Disk | undefined): void {
    if (disk === undefined) return;
    if (cache.isUp) this.#stop(cache);
    cache.disk = { ...disk };
    this.#start(cache);
  }

  #wrong(): string | undefined {
    for (const group of this.#groups()) {
      const states = group.map(({ disk }) => disk.choice?.state);
      const top = states
        .filter((state) => state !== undefined)
        .toSorted(compareClaims)
        .at(-1);
      if (top === undefined) continue;
      for (const [i, state] of states.entries())
        if (state === undefined || compareClaims(state, top) !== 0)
          return `${group[i]?.name} has another claim than ${JSON.stringify(top)}`;
      const plainWrites = group.find(({ disk }) => disk.id === top.origin);
      if (top.removed || plainWrites === undefined) continue;
      const isOrigin = plainWrites.disk.choice?.state.via === 'local';
      for (const cache of group) {
        if (!isOrigin && cache.disk.choice?.reached === true) return `${cache.name} believes that an origin is reached where nobody writes`;
        const end: Cache | undefined = isOrigin ? this.#follow(cache) : plainWrites;
        if (end !== plainWrites) return `${cache.name} does not lead to ${plainWrites.name}`;
        if (isOrigin && cache.disk.choice?.reached !== true) return `${cache.name} does not know that it reaches the origin`;
      }
    }
    return undefined;
  }

  /**
   * At most one unfenced pusher may be left, and the caches that can know it must agree where it
   * is.
   */
  #wrongPusher(): string | undefined {
    for (const group of this.#groups()) {
      const here = [...this.#pushers].filter(({ at }) => group.some(({ name }) => name === at));
      if (here.length > 1) return `${here.map(({ process }) => process).join(' and ')} push both`;
      for (const { process, at } of here) {
        const state = this.#cache(at).disk.choice?.state;
        if (state?.process !== process || state.via !== 'local') return `${process} was not fenced, but does not have the shard`;
      }
    }
    return undefined;
  }

  /** The cache at the end of the vias from this one; undefined if they lead nowhere. */
  #follow(from: Cache): Cache | undefined {
    let at: Cache | undefined = from;
    for (let hops = 0; at !== undefined && hops < this.#caches.length; hops++) {
      const via: string | undefined = at.disk.choice?.state.via;
      if (via === 'local') return at;
      const link: Link | undefined = via === 'parent' ? this.#links.get(at.name) : this.#links.get(Number(via?.slice('child/'.length)));
      if (link === undefined || (via !== 'parent' && link.parent !== at.name)) return undefined;
      at = this.#caches[via === 'parent' ? link.parent : link.child];
    }
    return undefined;
  }

  #groups(): readonly (readonly Cache[])[] {
    const rootOf = ({ name }: Cache): number => {
      const above = this.#links.get(name)?.parent;
      return above === undefined ? name : rootOf(this.#cache(above));
    };
    return this.#caches.map(({ name }) => this.#caches.filter((cache) => rootOf(cache) === name));
  }

  /** A new disk. Ids do not rise with time. */
  #blank(): Disk {
    this.#ids += 1;
    return { id: `c${String((this.#ids * 2_654_435_761) % 97).padStart(2, '0')}.${this.#ids}`, parentId: undefined, choice: undefined };
  }

  #cache(name: number): Cache {
    const cache = this.#caches[name];
    if (cache === undefined) throw new Error(`there is no cache ${name}`);
    return cache;
  }

  #pick(): Cache {
    return this.#cache(this.#below(this.#caches.length));
  }

  #below(max: number): number {
    return Math.floor(this.#random() * max);
  }
}
