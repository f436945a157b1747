/**
 * Kubernetes' strategic merge patch, after apimachinery's strategicpatch, for the client-go groups
 * that a cache holds.
 *
 * M1 Objects merge and null removes. A list replaces the old one, unless `shapes` has its merge
 *    key, or says that it is a set.
 * M2 Directives are obeyed and never stored: $patch (replace, delete, merge),
 *    $deleteFromPrimitiveList/…, $setElementOrder/…, $retainKeys. A malformed directive is always
 *    refused, also inside a new value or a replacement. There strategicpatch drops or stores it.
 * M3 Values that the patch does not name are shared with the target, not copied (json-tree.ts
 *    T3).
 * M4 List items are found by key in a map, so the work is linear in the lists that the patch
 *    names. The patch may be at most 200 levels deep.
 *
 * The results were compared with strategicpatch's on 40,000 random patches. They differ on purpose
 * where strategicpatch loses the intent. `$patch: replace` of a missing member sets it
 * (strategicpatch drops it). Directives inside a new list item are obeyed (strategicpatch stores
 * them). No package does this, because the schema is in struct tags of Kubernetes' Go types.
 */
import { entryOf } from '../domain/base/entry-of.js';
import { badRequest, Refused } from '../domain/errors.js';
import { canonicalNumber, isJsonArray, isJsonNumber, isJsonObject } from './json-tree.js';
import type { JsonArray, JsonObject, JsonTree } from './json-tree.js';
import { attempt } from '../domain/parsed.js';
import type { Parsed } from '../domain/parsed.js';

const depthMax = 200;

/** `mergeKey`: of a member that is a list; '' for a set of scalars. */
type Shape = Readonly<{ mergeKey?: string; members?: ReadonlyMap<string, Shape> }>;

const metadata: Shape = members({ ownerReferences: { mergeKey: 'uid' }, finalizers: { mergeKey: '' } });
const named: Shape = { mergeKey: 'name' };

/**
 * managedFields, RBAC's rules and subjects, and a policy's validations are left out: they are
 * replaced whole.
 */
const shapes: ReadonlyMap<string, Shape> = new Map([
  ['rbac.authorization.k8s.io', members({ metadata })],
  [
    'admissionregistration.k8s.io',
    members({
      metadata,
      webhooks: { ...named, ...members({ matchConditions: named }) },
      spec: members({ matchConditions: named, variables: named }),
    }),
  ],
]);

/**
 * Types that differ from the other types of their group: the variables of a MutatingAdmissionPolicy
 * are replaced whole.
 */
const shapesOfTypes: ReadonlyMap<string, Shape> = new Map([
  ['mutatingadmissionpolicies.admissionregistration.k8s.io', members({ metadata, spec: members({ matchConditions: named }) })],
]);

export function supportsStrategicMergePatch(group: string): boolean {
  return shapes.has(group);
}

export function applyStrategicMergePatch(
  target: JsonTree,
  patch: JsonTree,
  { group, resource }: Readonly<{ group: string; resource: string }>,
): Parsed<JsonTree> {
  return attempt(() => {
    if (!isJsonObject(patch)) throw bad('a strategic merge patch must be an object');
    const shape = shapesOfTypes.get(`${resource}.${group}`) ?? shapes.get(group);
    return mergeObject(isJsonObject(target) ? target : new Map(), patch, { shape, depth: 1 });
  });
}

type Place = Readonly<{ shape: Shape | undefined; depth: number }>;

function mergeObject(original: JsonObject, patch: JsonObject, place: Place): JsonObject {
  if (place.depth > depthMax) throw bad(`the patch nests deeper than ${depthMax}`);
  const directive = directiveOf(patch);
  if (directive === 'delete' || directive === 'replace') return (plain(patch, place.depth) ?? new Map()) as JsonObject;

  const merged = new Map(original);
  retainKeys(merged, patch);
  for (const [name, value] of patch) {
    if (!isDirective(name)) mergeMember(merged, name, value, place);
  }
  for (const [name, value] of patch) {
    if (name.startsWith(deletePrefix)) deleteFromList(merged, name.slice(deletePrefix.length), value);
  }
  for (const [name, value] of patch) {
    if (name.startsWith(orderPrefix)) setOrder(merged, name.slice(orderPrefix.length), { order: value, original, place });
  }
  return merged;
}

function mergeMember(merged: Map<string, JsonTree>, name: string, value: JsonTree, place: Place): void {
  const below: Place = { shape: place.shape?.members?.get(name), depth: place.depth + 1 };
  const current = merged.get(name);

  if (value === null) {
    merged.delete(name);
  } else if (isJsonObject(value) && isJsonObject(current)) {
    merged.set(name, mergeObject(current, value, below));
  } else if (isJsonArray(value) && below.shape?.mergeKey !== undefined) {
    merged.set(name, mergeList(isJsonArray(current) ? current : [], value, { ...below, mergeKey: below.shape.mergeKey }));
  } else {
    const taken = plain(value, below.depth);
    if (taken === undefined) merged.delete(name);
    else merged.set(name, taken);
  }
}

function mergeList(original: JsonArray, patch: JsonArray, place: Place & { mergeKey: string }): JsonArray {
  const { mergeKey } = place;
  const directives = patch.filter(isListDirective);
  const replace = directives.some((directive) => listDirectiveOf(directive) === 'replace');
  const merged = new Map<string, JsonTree[]>();
  for (const item of replace ? [] : original) append(merged, keyOf(item, mergeKey), item);
  for (const directive of directives) {
    if (listDirectiveOf(directive) === 'delete') merged.delete(keyOf(directive, mergeKey));
  }

  const named: string[] = [];
  for (const item of patch) {
    if (isListDirective(item)) continue;
    const key = keyOf(item, mergeKey);
    named.push(key);
    const [first, ...others] = merged.get(key) ?? [];
    if (isJsonObject(item)) merged.set(key, [mergeObject(isJsonObject(first) ? first : new Map(), item, place), ...others]);
    else merged.set(key, [item]);
  }
  return orderMerged(merged, { first: named, live: original.map((item) => keyOf(item, mergeKey)) });
}

function deleteFromList(merged: Map<string, JsonTree>, name: string, values: JsonTree): void {
  assertList(values, 'primitive list');
  const current = merged.get(name);
  if (!isJsonArray(current)) return;
  const gone = new Set(values.map((value) => keyOf(value, '')));
  merged.set(
    name,
    current.filter((item) => !isScalar(item) || !gone.has(keyOf(item, ''))),
  );
}

function setOrder(
  merged: Map<string, JsonTree>,
  name: string,
  { order, original, place }: { order: JsonTree; original: JsonObject; place: Place },
): void {
  assertList(order, 'setElementOrder list');
  const current = merged.get(name);
  if (!isJsonArray(current)) return;

  const mergeKey = place.shape?.members?.get(name)?.mergeKey ?? '';
  const byKey = new Map<string, JsonTree[]>();
  for (const item of current) append(byKey, keyOf(item, mergeKey), item);
  const before = original.get(name);
  const live = isJsonArray(before) ? before.map((item) => keyOf(item, mergeKey)) : [];
  merged.set(name, orderMerged(byKey, { first: order.map((item) => keyOf(item, mergeKey)), live }));
}

/**
 * Removes the members that $retainKeys does not list. A patch that sets a member outside the list
 * is refused.
 */
function retainKeys(merged: Map<string, JsonTree>, patch: JsonObject): void {
  const retained = patch.get('$retainKeys');
  if (retained === undefined) return;
  assertList(retained, 'retainKeys');

  const names = new Set(retained);
  for (const [name, value] of patch) {
    if (value !== null && !isDirective(name) && !names.has(name)) throw bad('invalid patch format of retainKeys');
  }
  for (const name of merged.keys()) {
    if (!names.has(name)) merged.delete(name);
  }
}

/**
 * A value that is used whole, without its directives and null members. Undefined if it is itself
 * null or a delete directive.
 */
function plain(value: JsonTree, depth: number): JsonTree | undefined {
  if (depth > depthMax) throw bad(`the patch nests deeper than ${depthMax}`);
  if (isJsonArray(value)) return value.flatMap((item) => plainItem(item, depth + 1));
  if (!isJsonObject(value)) return value;

  const members = new Map<string, JsonTree>();
  retainKeys(members, value);
  for (const [name, member] of value) {
    if (name.startsWith(deletePrefix)) assertList(member, 'primitive list');
    if (name.startsWith(orderPrefix)) assertList(member, 'setElementOrder list');
    const taken = member === null || isDirective(name) ? undefined : plain(member, depth + 1);
    if (taken !== undefined) members.set(name, taken);
  }
  return directiveOf(value) === 'delete' ? undefined : members;
}

/** An item of a list that is used whole. An item with $patch is a directive and is left out. */
function plainItem(item: JsonTree, depth: number): readonly JsonTree[] {
  if (isListDirective(item)) {
    listDirectiveOf(item);
    return [];
  }
  const taken = plain(item, depth);
  return taken === undefined ? [] : [taken];
}

const deletePrefix = '$deleteFromPrimitiveList/';
const orderPrefix = '$setElementOrder/';

function isDirective(name: string): boolean {
  return name === '$patch' || name === '$retainKeys' || name.startsWith(deletePrefix) || name.startsWith(orderPrefix);
}

function isListDirective(item: JsonTree): item is JsonObject {
  return isJsonObject(item) && item.has('$patch');
}

/** Throws Refused for an unknown directive. */
function directiveOf(patch: JsonObject): 'delete' | 'replace' | 'merge' | undefined {
  const directive = patch.get('$patch');
  if (directive === undefined || directive === 'delete' || directive === 'replace' || directive === 'merge') return directive;
  throw bad('unknown $patch directive');
}

/** Throws Refused for an unknown directive of a list item. */
function listDirectiveOf(item: JsonObject): 'delete' | 'replace' {
  const directive = item.get('$patch');
  if (directive === 'delete' || directive === 'replace') return directive;
  throw bad('unknown $patch directive in a list');
}

function assertList(value: JsonTree, what: string): asserts value is JsonArray {
  if (!isJsonArray(value)) throw bad(`invalid patch format of ${what}`);
}

/** Identifies a list item: by the value of its merge key or, in a set, by its own value. */
function keyOf(item: JsonTree, mergeKey: string): string {
  const key = mergeKey === '' ? item : isJsonObject(item) ? item.get(mergeKey) : undefined;
  if (key === undefined) throw bad(`an item of the list does not contain the declared merge key: ${mergeKey}`);
  if (!isScalar(key)) throw bad('an item of a merged list has a merge key that is not a scalar');
  return isJsonNumber(key) ? canonicalNumber(key) : JSON.stringify(key);
}

function isScalar(tree: JsonTree): boolean {
  return !isJsonArray(tree) && !isJsonObject(tree);
}

function append(lists: Map<string, JsonTree[]>, key: string, item: JsonTree): void {
  entryOf(lists, key, (): JsonTree[] => []).push(item);
}

function members(shapesByName: Readonly<Record<string, Shape>>): Shape {
  return { members: new Map(Object.entries(shapesByName)) };
}

function bad(message: string): Refused {
  return new Refused(badRequest(message));
}

/**
 * The order of a merged list, as in strategicpatch's normalizeElementOrder. Items that the patch
 * names keep the patch's order, the others keep their own. An unnamed item precedes the next named
 * item if it did so in the live list.
 *
 *   live  a b c d      first  d b      merged  a c d b
 *
 * (a and c preceded d in the live list.)
 */
function orderMerged<T>(
  items: ReadonlyMap<string, readonly T[]>,
  { first, live }: { first: readonly string[]; live: readonly string[] },
): readonly T[] {
  const named = [...new Set(first)].filter((key) => items.has(key));
  const isNamed = new Set(named);
  const placeInLive = new Map<string, number>();
  for (const [place, key] of live.entries()) if (!placeInLive.has(key)) placeInLive.set(key, place);
  const others = [...items.keys()].filter((key) => !isNamed.has(key));

  const ordered: string[] = [];
  let next = 0;
  for (const key of named) {
    const place = placeInLive.get(key) ?? -1;
    while (next < others.length && (placeInLive.get(others[next] as string) ?? Infinity) < place) ordered.push(others[next++] as string);
    ordered.push(key);
  }
  return [...ordered, ...others.slice(next)].flatMap((key) => items.get(key) ?? []);
}
