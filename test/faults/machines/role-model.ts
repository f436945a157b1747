/**
 * The obvious cache: a map of the objects, and a list of all changes. The server chooses revisions;
 * the model learns each from the watch of everything, and then knows what every list, watch and
 * resume must answer.
 *
 *   changes  1 2 3 4 5 6 ──restore the copy of 3──▶ 1 2 3 7 8
 *                └ copy
 *
 * Revisions that were seen since the copy (4 5 6) are foreign for ever; those before stay valid.
 */
import type { Change, ObjectKey, Position } from '../../support/watch-history.js';
import { keyAt, labelsOf, type Content, type Place } from './roles.js';

export type Held = Readonly<{ place: Place; position: Position; content: Content }>;

/** A change that a write makes. For a delete, `content` is the last content. */
export type Effect = Readonly<{ kind: 'put' | 'delete'; place: Place; content: Content }>;

export type Write =
  | Readonly<{ kind: 'create'; place: Place; content: Content }>
  | Readonly<{ kind: 'replace'; place: Place; content: Content; base: 'current' | 'older' }>
  | Readonly<{ kind: 'patch'; place: Place; how: 'merge' | 'json' | 'strategic'; tier: string; turn: string }>
  | Readonly<{ kind: 'same' | 'samePatch' | 'delete'; place: Place }>;

export type Expected = Readonly<{ status: number; effects: readonly Effect[] }>;

export type Copy = Readonly<{ changes: readonly Change[]; current: ReadonlyMap<ObjectKey, Held>; seen: ReadonlySet<Position> }>;

export class RoleModel {
  readonly #changesMax: number;
  #changes: Change[] = [];
  #current = new Map<ObjectKey, Held>();
  /** Revisions that a client has seen, in that order. */
  #seen = new Set<Position>();
  readonly #lost = new Set<Position>();

  /** The server may forget a change once so many came after it. */
  constructor(changesMax: number) {
    this.#changesMax = changesMax;
  }

  get truth(): readonly Change[] {
    return [...this.#changes];
  }

  get current(): ReadonlyMap<ObjectKey, Held> {
    return this.#current;
  }

  /** Every revision from which a client may try to resume, lost ones included. */
  get revisions(): readonly Position[] {
    return [...this.#seen, ...this.#lost];
  }

  held(place: Place): Held | undefined {
    return this.#current.get(keyAt(place));
  }

  expect(write: Write): Expected {
    const held = this.held(write.place);
    const { place } = write;
    if (write.kind === 'create')
      return held === undefined ? { status: 201, effects: [{ kind: 'put', place, content: write.content }] } : refused(409);
    if (held === undefined) return refused(404);
    switch (write.kind) {
      case 'replace':
        return write.base === 'older' ? refused(409) : { status: 200, effects: [{ kind: 'put', place, content: write.content }] };
      case 'patch':
        return { status: 200, effects: [{ kind: 'put', place, content: { ...held.content, tier: write.tier, turn: write.turn } }] };
      case 'delete':
        return { status: 200, effects: this.#deletion(held) };
      default:
        return { status: 200, effects: [] };
    }
  }

  /** The effects of a DELETE of a collection, for each object separately. */
  expectCleared(covers: (key: ObjectKey) => boolean): readonly (readonly Effect[])[] {
    return [...this.#current].filter(([key]) => covers(key)).map(([, held]) => this.#deletion(held));
  }

  record({ kind, place, content }: Effect, position: Position): void {
    const key = keyAt(place);
    if (kind === 'put') this.#current.set(key, { place, position, content });
    else this.#current.delete(key);
    this.#changes.push({ kind, key, position, labels: labelsOf(content) });
    this.see(position);
  }

  see(position: Position): void {
    if (position > 0n && !this.#lost.has(position)) this.#seen.add(position);
  }

  /** Whether a client has seen this revision in the present life of the store. */
  isOurs(position: Position): boolean {
    return this.#seen.has(position);
  }

  /** Whether the server must still know every change after this revision. */
  isRemembered(position: Position): boolean {
    return this.isOurs(position) && this.#changes.filter((change) => change.position > position).length <= this.#changesMax;
  }

  copy(): Copy {
    return { changes: [...this.#changes], current: new Map(this.#current), seen: new Set(this.#seen) };
  }

  /** `forgets`: revisions that were seen before the copy become foreign too. */
  restore({ changes, current, seen }: Copy, forgets: boolean): void {
    const isKept = (position: Position): boolean => !forgets && seen.has(position);
    for (const position of [...this.#seen, ...seen]) if (!isKept(position)) this.#lost.add(position);
    this.#changes = [...changes];
    this.#current = new Map(current);
    this.#seen = new Set([...seen].filter(isKept));
  }

  /**
   * When an object goes, its newest namesake on another shard is written again, because kcp's
   * informer keys have no shard.
   */
  #deletion({ place, content }: Held): readonly Effect[] {
    const { cluster, namespace, name } = place;
    const namesakes = [...this.#current.values()].filter(
      ({ place: other }) =>
        other.shard !== place.shard && keyAt({ ...other, shard: '' }) === keyAt({ shard: '', cluster, namespace, name }),
    );
    const survivor = namesakes.toSorted((a, b) => (a.position > b.position ? -1 : 1))[0];
    const gone: Effect = { kind: 'delete', place, content };
    return survivor === undefined ? [gone] : [gone, { kind: 'put', place: survivor.place, content: survivor.content }];
  }
}

function refused(status: number): Expected {
  return { status, effects: [] };
}
