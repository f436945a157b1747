/**
 * Finds the watchers that a change may concern. Watchers with the same scope, selector and
 * representation form a group, for which a change is matched and encoded once. A place has the
 * groups of one scope.
 *
 * The members that a scope names (cluster, name, …) are its shape. A key is looked up once for each
 * shape in use, at most 32 (tuple space search). Scopes that do not cover the key cost nothing,
 * however many there are.
 */
import { entryOf } from '../domain/base/entry-of.js';
import type { Change } from '../domain/change.js';
import type { Key } from '../domain/key.js';
import type { Representation } from '../domain/ports.js';
import type { Revision } from '../domain/revision.js';
import type { Scope } from '../domain/scope.js';
import { formatSelector, type Selector } from '../domain/syntax/selector.js';

export type View = Readonly<{ scope: Scope; selector: Selector; representation: Representation }>;

/**
 * `changes`: the changes above `from` that some group has not received, ascending. `due`: how many
 * groups have not received all changes. `tooLarge`: the last revision that was too large to send.
 */
export type ScopeGroups<Member> = {
  readonly scope: Scope;
  readonly groups: Map<string, Group<Member>>;
  changes: Change[];
  from: Revision;
  tooLarge: Revision;
  bytes: number;
  due: number;
};

/** Watchers that receive the same bytes. They have received every change up to `after`. */
export type Group<Member> = Pick<View, 'selector' | 'representation'> & {
  readonly place: ScopeGroups<Member>;
  readonly members: Set<Member>;
  after: Revision;
};

/** Places by shape, then by the text of the members that the scope names. */
type Shapes<Member> = Map<number, Map<string, ScopeGroups<Member>>>;

export class ScopeIndex<Member> {
  readonly #types = new Map<string, Shapes<Member>>();

  /**
   * Finds or creates the group of a view. A new group counts as having every change up to `after`.
   */
  groupOf(view: View, after: Revision): Group<Member> {
    const place = this.#placeOf(view.scope);
    const { selector, representation } = view;
    return entryOf(place.groups, groupId(view), (): Group<Member> => ({ place, selector, representation, members: new Set(), after }));
  }

  find({ scope, ...view }: View): Group<Member> | undefined {
    const shape = shapeOf(scope);
    return this.#types.get(typeOf(scope))?.get(shape)?.get(textOf(shape, scope))?.groups.get(groupId(view));
  }

  remove({ place, selector, representation }: Group<Member>): void {
    place.groups.delete(groupId({ selector, representation }));
    if (place.groups.size > 0) return;
    const [type, shape] = [typeOf(place.scope), shapeOf(place.scope)];
    const shapes = this.#types.get(type);
    const places = shapes?.get(shape);
    places?.delete(textOf(shape, place.scope));
    if (places?.size === 0) shapes?.delete(shape);
    if (shapes?.size === 0) this.#types.delete(type);
  }

  covering({ resource, ...rest }: Key): readonly ScopeGroups<Member>[] {
    const shapes = this.#types.get(typeOf(resource));
    if (shapes === undefined) return [];
    const names = { ...rest, identity: resource.identity };
    const covering: ScopeGroups<Member>[] = [];
    for (const [shape, places] of shapes) {
      const place = places.get(textOf(shape, names));
      if (place !== undefined) covering.push(place);
    }
    return covering;
  }

  covers(key: Key): boolean {
    return this.covering(key).length > 0;
  }

  #placeOf(scope: Scope): ScopeGroups<Member> {
    const shape = shapeOf(scope);
    const shapes = entryOf(this.#types, typeOf(scope), (): Shapes<Member> => new Map());
    const places = entryOf(shapes, shape, () => new Map<string, ScopeGroups<Member>>());
    const empty = { changes: [], from: 0, tooLarge: 0, bytes: 0, due: 0 };
    return entryOf(places, textOf(shape, scope), (): ScopeGroups<Member> => ({ scope, groups: new Map(), ...empty }));
  }
}

type Named = Readonly<{ identity: string; shard: string; cluster: string; namespace?: string | undefined; name?: string | undefined }>;

/** One bit for each member that the scope names. */
function shapeOf({ identity, shard, cluster, namespace, name }: Named): number {
  return (
    (identity === '*' ? 0 : 1) +
    (shard === '*' ? 0 : 2) +
    (cluster === '*' ? 0 : 4) +
    (namespace === undefined ? 0 : 8) +
    (name === undefined ? 0 : 16)
  );
}

/** The members in a shape as one text; no name contains a slash. */
function textOf(shape: number, { identity, shard, cluster, namespace, name }: Named): string {
  let text = '';
  if (shape & 1) text += `${identity}/`;
  if (shape & 2) text += `${shard}/`;
  if (shape & 4) text += `${cluster}/`;
  if (shape & 8) text += `${namespace}/`;
  if (shape & 16) text += `${name}/`;
  return text;
}

function typeOf({ group, resource }: Readonly<{ group: string; resource: string }>): string {
  return `${resource}.${group}`;
}

function groupId({ selector, representation }: Omit<View, 'scope'>): string {
  return `${representation.id}\n${formatSelector(selector)}`;
}
