/**
 * Which ClusterCachedResources declare types, where only so many of a shard, a type and a logical cluster may: the others wait until one of these is
 * gone. While one waits, the objects of its type are kept, because the type may be served again.
 *
 * Bound: of each shard `waitingMax` wait. One more is forgotten until it is written again, or the server starts.
 */
import { formatPlace, type Declaration, type Place } from './declaration.js';
import { formatResource, type Resource } from './resource.js';

/** One for each workspace that provides a type. A pusher names all its types in one frame, which is read in one turn of the event loop. */
const ofShardMax = 5_000;
/** A change of a type looks at all declarations of it, a request below a logical cluster at all that are there. */
const ofTypeMax = 1_000;
const ofClusterMax = 1_000;
const waitingMax = 20_000;

/** The names that a room's name is made of have no space. */
type Room = Readonly<{ name: string; max: number }>;

/** `waitsFor`: the name of a room that was full; undefined when it declares its type. */
type Entry = Readonly<{ declaration: Declaration; waitsFor: string | undefined }>;

/** `former`: what was at the place. What declares its type no longer, or from now on: one that is written again is in both. */
export type Replaced = Readonly<{ former: Declaration | undefined; ended: readonly Declaration[]; begun: readonly Declaration[] }>;

export class DeclarationRooms {
  /** By the place. */
  readonly #entries = new Map<string, Entry>();
  /** How many are in a room; none that is empty. */
  readonly #counts = new Map<string, number>();
  /** The places of those that wait, in the order in which they came, by what they wait for. */
  readonly #lines = new Map<string, Set<string>>();

  /** Puts something at a place, or nothing. What declares its type keeps its room when it is written again. */
  replace(place: Place, next: Declaration | undefined): Replaced {
    const former = this.#leave(formatPlace(place));
    const begun = next !== undefined && this.#enter(next) ? [next] : [];
    if (former === undefined || former.waitsFor !== undefined) return { former: former?.declaration, ended: [], begun };

    const { declaration } = former;
    for (const room of roomsOf(declaration)) begun.push(...this.#admit(room));
    return { former: declaration, ended: [declaration], begun };
  }

  /** Whether a ClusterCachedResource of exactly this type waits. */
  isAwaited(resource: Resource): boolean {
    return this.#counts.has(waitingForType(resource));
  }

  /** Whether it declares its type now. Otherwise it waits, or is forgotten. */
  #enter(declaration: Declaration): boolean {
    const waitsFor = this.#fullOf(roomsOf(declaration));
    const entry = { declaration, waitsFor };
    if (waitsFor !== undefined && this.#fullOf(takenBy(entry)) !== undefined) return false;

    const place = formatPlace(declaration.place);
    this.#entries.set(place, entry);
    for (const { name } of takenBy(entry)) this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    if (waitsFor === undefined) return true;
    const line = this.#lines.get(waitsFor) ?? new Set();
    this.#lines.set(waitsFor, line.add(place));
    return false;
  }

  #leave(place: string): Entry | undefined {
    const entry = this.#entries.get(place);
    if (entry === undefined) return undefined;
    this.#entries.delete(place);
    for (const { name } of takenBy(entry)) {
      const count = (this.#counts.get(name) ?? 0) - 1;
      if (count === 0) this.#counts.delete(name);
      else this.#counts.set(name, count);
    }
    if (entry.waitsFor !== undefined) this.#leaveLine(entry.waitsFor, place);
    return entry;
  }

  #leaveLine(room: string, place: string): void {
    const line = this.#lines.get(room);
    line?.delete(place);
    if (line?.size === 0) this.#lines.delete(room);
  }

  /** Where one has gone, the first that has room everywhere declares its type; those before it wait for another room from now on. */
  #admit(room: Room): readonly Declaration[] {
    if (this.#fullOf([room]) !== undefined) return [];
    for (const place of this.#lines.get(room.name) ?? []) {
      const declaration = this.#leave(place)?.declaration;
      if (declaration !== undefined && this.#enter(declaration)) return [declaration];
    }
    return [];
  }

  #fullOf(rooms: readonly Room[]): string | undefined {
    return rooms.find(({ name, max }) => (this.#counts.get(name) ?? 0) >= max)?.name;
  }
}

function takenBy({ declaration, waitsFor }: Entry): readonly Room[] {
  return waitsFor === undefined ? roomsOf(declaration) : waitingRoomsOf(declaration);
}

function roomsOf({ place: { shard, cluster }, ...declared }: Declaration): readonly Room[] {
  return [
    { name: `${shard} ${formatResource(declared)}`, max: ofTypeMax },
    { name: `${shard} ${cluster} `, max: ofClusterMax },
    { name: shard, max: ofShardMax },
  ];
}

function waitingRoomsOf({ place: { shard }, ...declared }: Declaration): readonly Room[] {
  return [
    { name: `${shard} waiting`, max: waitingMax },
    { name: waitingForType(declared), max: Number.POSITIVE_INFINITY },
  ];
}

function waitingForType(resource: Resource): string {
  return ` ${formatResource(resource)}`;
}
