/**
 * Which ClusterCachedResources declare types, where only so many of a shard, a type and a logical cluster may: the others wait until one of these is
 * gone. While one waits, the objects of its type are kept, because the type may be served again.
 *
 * Those of one type and one logical cluster wait together. While the shard has room, each that waits does so for its type or its logical cluster. While it
 * has none, some wait for the shard alone; `ready` has the type or the logical cluster of each of them.
 *
 * Cost: one that goes looks at one group more than there are full types, or full logical clusters: twenty, because twenty of them fill the shard.
 * Bound: of each shard `waitingMax` wait. One more is forgotten until it is written again, or the server starts.
 */
import { formatPlace, type Declaration, type Place } from './declaration.js';
import { formatResource, type Resource } from './resource.js';

export type DeclarationLimits = Readonly<{ ofShardMax: number; ofTypeMax: number; ofClusterMax: number; waitingMax: number }>;

const defaultLimits: DeclarationLimits = {
  /** One for each workspace that provides a type. */
  ofShardMax: 20_000,
  /** A change of a type looks at all declarations of it, a request below a logical cluster at all that are there. */
  ofTypeMax: 1_000,
  ofClusterMax: 1_000,
  waitingMax: 20_000,
};

/** `former`: what was at the place. What declares its type no longer, or from now on: one that is written again is in both. */
export type Replaced = Readonly<{ former: Declaration | undefined; ended: readonly Declaration[]; begun: readonly Declaration[] }>;

export class DeclarationRooms {
  readonly #limits: DeclarationLimits;
  readonly #shards = new Map<string, ShardRooms>();
  /** How many wait for each type, of whatever shard. */
  readonly #awaited = new Map<string, number>();

  constructor(limits = defaultLimits) {
    this.#limits = limits;
  }

  /** Puts something at a place, or nothing. What declares its type keeps its room when it is written again. */
  replace(place: Place, next: Declaration | undefined): Replaced {
    const rooms = this.#shards.get(place.shard) ?? new ShardRooms(this.#limits, (type, by) => this.#note(type, by));
    const replaced = rooms.replace(formatPlace(place), next);
    if (rooms.isEmpty) this.#shards.delete(place.shard);
    else this.#shards.set(place.shard, rooms);
    return replaced;
  }

  /** Whether a ClusterCachedResource of exactly this type waits. */
  isAwaited(resource: Resource): boolean {
    return this.#awaited.has(formatResource(resource));
  }

  #note(type: string, by: 1 | -1): void {
    const waiting = (this.#awaited.get(type) ?? 0) + by;
    if (waiting === 0) this.#awaited.delete(type);
    else this.#awaited.set(type, waiting);
  }
}

type Entry = Readonly<{ declaration: Declaration; type: Room; cluster: Room; declares: boolean }>;

/** A type or a logical cluster. `waiting`: the places of those that wait, by what they are of on the other side. */
type Room = Readonly<{ name: string; max: number; waiting: Map<Room, Set<string>> }> & { declaring: number };

class ShardRooms {
  readonly #limits: DeclarationLimits;
  readonly #noteWaiting: (type: string, by: 1 | -1) => void;
  /** By the place. */
  readonly #entries = new Map<string, Entry>();
  readonly #types = new Map<string, Room>();
  readonly #clusters = new Map<string, Room>();
  readonly #ready = new Set<Room>();
  #declaring = 0;

  constructor(limits: DeclarationLimits, noteWaiting: (type: string, by: 1 | -1) => void) {
    this.#limits = limits;
    this.#noteWaiting = noteWaiting;
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  replace(place: string, next: Declaration | undefined): Replaced {
    const former = this.#leave(place);
    const begun = next !== undefined && this.#enter(place, next) ? [next] : [];
    if (former === undefined || !former.declares) return { former: former?.declaration, ended: [], begun };
    begun.push(...this.#admit(former));
    return { former: former.declaration, ended: [former.declaration], begun };
  }

  get #hasRoom(): boolean {
    return this.#declaring < this.#limits.ofShardMax;
  }

  /** Whether it declares its type now. Otherwise it waits, or is forgotten. */
  #enter(place: string, declaration: Declaration): boolean {
    const { ofTypeMax, ofClusterMax, waitingMax } = this.#limits;
    const type = roomOf(this.#types, formatResource(declaration), ofTypeMax);
    const cluster = roomOf(this.#clusters, declaration.place.cluster, ofClusterMax);
    const declares = this.#hasRoom && !isFull(type) && !isFull(cluster);
    if (declares) {
      for (const room of [type, cluster]) room.declaring += 1;
      this.#declaring += 1;
    } else if (this.#entries.size - this.#declaring < waitingMax) {
      const group = type.waiting.get(cluster) ?? new Set();
      type.waiting.set(cluster, group.add(place));
      cluster.waiting.set(type, group);
      this.#noteWaiting(type.name, 1);
      if (!isFull(type) && !isFull(cluster)) this.#ready.add(type);
    } else {
      this.#drop(type, cluster);
      return false;
    }
    this.#entries.set(place, { declaration, type, cluster, declares });
    return declares;
  }

  #leave(place: string): Entry | undefined {
    const entry = this.#entries.get(place);
    if (entry === undefined) return undefined;
    const { type, cluster, declares } = entry;
    this.#entries.delete(place);
    if (declares) {
      for (const room of [type, cluster]) room.declaring -= 1;
      this.#declaring -= 1;
    } else {
      const group = type.waiting.get(cluster);
      group?.delete(place);
      if (group?.size === 0) {
        type.waiting.delete(cluster);
        cluster.waiting.delete(type);
      }
      this.#noteWaiting(type.name, -1);
    }
    this.#drop(type, cluster);
    return entry;
  }

  /** Where one has gone, others declare their types instead, at most one for each room that it had. */
  #admit({ type, cluster }: Entry): readonly Declaration[] {
    const admitted: Declaration[] = [];
    const enter = (place: string | undefined): void => {
      const declaration = place === undefined ? undefined : this.#leave(place)?.declaration;
      if (place !== undefined && declaration !== undefined && this.#enter(place, declaration)) admitted.push(declaration);
    };
    for (const room of [type, cluster]) {
      if (this.#hasRoom) enter(firstOf(room));
      else if (room.waiting.size > 0) this.#ready.add(room);
    }
    for (const room of this.#ready) {
      if (!this.#hasRoom) break;
      const first = firstOf(room);
      if (first === undefined) this.#ready.delete(room);
      else enter(first);
    }
    return admitted;
  }

  /** What has neither anything that declares nor anything that waits is no room. */
  #drop(type: Room, cluster: Room): void {
    if (isUnused(type)) this.#types.delete(type.name);
    if (isUnused(cluster)) this.#clusters.delete(cluster.name);
    for (const room of [type, cluster]) if (room.waiting.size === 0) this.#ready.delete(room);
  }
}

function roomOf(rooms: Map<string, Room>, name: string, max: number): Room {
  const room = rooms.get(name) ?? { name, max, waiting: new Map(), declaring: 0 };
  rooms.set(name, room);
  return room;
}

function isFull({ declaring, max }: Room): boolean {
  return declaring >= max;
}

function isUnused({ declaring, waiting }: Room): boolean {
  return declaring === 0 && waiting.size === 0;
}

/** The first place in the room that waits for nothing but the shard. */
function firstOf(room: Room): string | undefined {
  if (isFull(room)) return undefined;
  for (const [other, [place]] of room.waiting) if (!isFull(other)) return place;
  return undefined;
}
