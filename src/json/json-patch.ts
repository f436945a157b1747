/**
 * JSON Patch, RFC 6902, on the lossless tree.
 *
 * J1 All or nothing: the result is a new tree, and the target never changes. If an operation fails,
 *    the patch is refused, and the refusal names the operation (422, as in Kubernetes).
 * J2 Values that no operation names are shared with the target, not copied.
 * J3 Work is bounded: 10,000 operations and 3 MiB of `copy` (both as in Kubernetes). Inserting and
 *    removing may shift 50 million array elements (about 0.1 s). Beyond a bound the answer is 413.
 *
 * The packages fast-json-patch and rfc6902 patch plain objects in place, compare numbers as floats,
 * and have none of the bounds of J3.
 */
import { badRequest, Refused, unreachable } from '../domain/errors.js';
import type { Refusal } from '../domain/errors.js';
import { parseJson, strictCause } from './json-parser.js';
import { equalJson, formatJson, isJsonArray, isJsonObject, measureJson } from './json-tree.js';
import type { JsonObject, JsonTree } from './json-tree.js';
import { attempt, mustParse } from '../domain/parsed.js';
import type { Parsed } from '../domain/parsed.js';

const operationMembers: ReadonlySet<string> = new Set(['op', 'path', 'from', 'value']);
const operationsMax = 10_000;
const shownCharactersMax = 512;
const copiedCharactersMax = 3 * 1024 * 1024;
const movedElementsMax = 50_000_000;

export type JsonPatch = readonly Operation[];

type Operation =
  | Readonly<{ kind: 'add' | 'replace' | 'test'; path: JsonPointer; value: JsonTree; label: string }>
  | Readonly<{ kind: 'remove'; path: JsonPointer; label: string }>
  | Readonly<{ kind: 'move' | 'copy'; path: JsonPointer; from: JsonPointer; label: string }>;

/** RFC 6902 ignores unknown members; a strict patch must not have any. */
export function parseJsonPatch(tree: JsonTree, { isStrict = false } = {}): Parsed<JsonPatch> {
  return attempt(() => {
    if (!isJsonArray(tree)) throw new Refused(badRequest('a JSON patch must be an array of operations'));
    if (tree.length > operationsMax) {
      throw new Refused(tooMuch(`The allowed maximum operations in a JSON patch is ${operationsMax}, got ${tree.length}`));
    }
    return tree.map((operation, index) => parseOperation(operation, index, isStrict));
  });
}

export function applyJsonPatch(target: JsonTree, patch: JsonPatch): Parsed<JsonTree> {
  return attempt(() => {
    const draft = new Draft(target);
    for (const operation of patch) draft.apply(operation);
    return draft.root;
  });
}

function parseOperation(tree: JsonTree, index: number, isStrict: boolean): Operation {
  if (!isJsonObject(tree)) throw new Refused(badRequest(`operation ${index} of the JSON patch is not an object`));
  const kind = tree.get('op');
  const label = `operation ${index} (${typeof kind === 'string' ? kind : '?'} ${formatJson(tree.get('path') ?? null)})`;
  const stray = isStrict ? [...tree.keys()].find((name) => !operationMembers.has(name)) : undefined;
  if (stray !== undefined) throw failed(label, `strict decoding error: ${strictCause('unknown', `[${index}].${stray}`)}`);
  if (typeof (tree.get('from') ?? '') !== 'string') throw failed(label, 'has a "from" that is not a string');
  const path = pointerIn(tree, 'path', label);

  switch (kind) {
    case 'add':
    case 'replace':
    case 'test': {
      const value = tree.get('value');
      if (value === undefined) throw failed(label, 'has no "value"');
      return { kind, path, value, label };
    }
    case 'remove':
      return { kind, path, label };
    case 'move':
    case 'copy':
      return { kind, path, from: pointerIn(tree, 'from', label), label };
    default:
      throw failed(label, 'is not an operation of RFC 6902');
  }
}

function pointerIn(operation: JsonObject, member: 'path' | 'from', label: string): JsonPointer {
  const text = operation.get(member);
  const pointer = typeof text === 'string' ? parseJsonPointer(text) : undefined;
  if (pointer === undefined) throw failed(label, `has no JSON pointer in "${member}"`);
  return pointer;
}

type Container = JsonTree[] | Map<string, JsonTree>;

/**
 * The tree while it is patched. Containers along a path are copied once, then changed in place;
 * `#own` contains the copies.
 */
class Draft {
  root: JsonTree;
  readonly #own = new Set<JsonTree>();
  #copiedCharacters = 0;
  #movedElements = 0;

  constructor(root: JsonTree) {
    this.root = root;
  }

  apply(operation: Operation): void {
    const { path, label } = operation;
    switch (operation.kind) {
      case 'add':
        return this.#add(path, operation.value, label);
      case 'replace':
        return this.#replace(path, operation.value, label);
      case 'remove':
        return this.#remove(path, label);
      case 'test':
        if (!equalJson(this.#tested(path, label), operation.value)) throw failed(label, 'the document has another value there');
        return;
      case 'move':
        return this.#move(operation.from, path, label);
      case 'copy':
        return this.#add(path, this.#copy(operation.from, label), label);
      default:
        return unreachable(operation);
    }
  }

  #move(from: JsonPointer, path: JsonPointer, label: string): void {
    const value = this.#get(from, label);
    const inside = from.every((token, depth) => token === path[depth]);
    if (inside && from.length === path.length) return;
    if (inside) throw failed(label, 'a value cannot be moved into itself');
    this.#remove(from, label);
    this.#add(path, value, label);
  }

  /**
   * Copies through JSON text. If the value were shared, a later change in one place would show in
   * the other.
   */
  #copy(from: JsonPointer, label: string): JsonTree {
    const value = this.#get(from, label);
    this.#copiedCharacters += measureJson(value, copiedCharactersMax);
    if (this.#copiedCharacters > copiedCharactersMax) {
      throw new Refused(tooMuch(`a JSON patch may copy at most ${copiedCharactersMax} characters; ${label} exceeds that`));
    }
    return mustParse(parseJson(formatJson(value), { depthMax: Infinity }));
  }

  #add(path: JsonPointer, value: JsonTree, label: string): void {
    const name = path.at(-1);
    if (name === undefined) return this.#setRoot(value);
    const container = this.#ownedParent(path, label);
    if (container instanceof Map) {
      container.set(name, value);
    } else {
      const index = name === '-' ? container.length : indexOf(name, container.length, label);
      this.#countMoved(container.length - index, label);
      container.splice(index, 0, value);
    }
  }

  #replace(path: JsonPointer, value: JsonTree, label: string): void {
    const name = path.at(-1);
    if (name === undefined) return this.#setRoot(value);
    const container = this.#ownedParent(path, label);
    memberOf(container, name, label);
    if (container instanceof Map) container.set(name, value);
    else container[Number(name)] = value;
  }

  #remove(path: JsonPointer, label: string): void {
    const name = path.at(-1);
    if (name === undefined) throw failed(label, 'the whole document cannot be removed');
    const container = this.#ownedParent(path, label);
    memberOf(container, name, label);
    if (container instanceof Map) {
      container.delete(name);
    } else {
      this.#countMoved(container.length - Number(name), label);
      container.splice(Number(name), 1);
    }
  }

  #setRoot(value: JsonTree): void {
    this.root = value;
  }

  #get(path: JsonPointer, label: string): JsonTree {
    return path.reduce((tree, name) => memberOf(tree, name, label), this.root);
  }

  /** Unlike RFC 6902, Kubernetes tests a missing member of an object as null. */
  #tested(path: JsonPointer, label: string): JsonTree {
    const name = path.at(-1);
    const parent = name === undefined ? undefined : this.#get(path.slice(0, -1), label);
    return name !== undefined && isJsonObject(parent) && !parent.has(name) ? null : this.#get(path, label);
  }

  #ownedParent(path: JsonPointer, label: string): Container {
    let parent = this.#owned(this.root, label);
    this.root = parent;
    for (const name of path.slice(0, -1)) {
      const child = this.#owned(memberOf(parent, name, label), label);
      if (parent instanceof Map) parent.set(name, child);
      else parent[Number(name)] = child;
      parent = child;
    }
    return parent;
  }

  #owned(tree: JsonTree, label: string): Container {
    if (this.#own.has(tree)) return tree as Container;
    if (!isJsonArray(tree) && !isJsonObject(tree)) throw failed(label, 'the path goes through a value without members');
    const copy = isJsonArray(tree) ? [...tree] : new Map(tree);
    this.#own.add(copy);
    return copy;
  }

  #countMoved(elements: number, label: string): void {
    this.#movedElements += elements;
    if (this.#movedElements > movedElementsMax) {
      throw new Refused(tooMuch(`a JSON patch may move at most ${movedElementsMax} array elements; ${label} exceeds that`));
    }
  }
}

function memberOf(tree: JsonTree, name: string, label: string): JsonTree {
  const member = isJsonObject(tree) ? tree.get(name) : isJsonArray(tree) ? tree[indexOf(name, tree.length - 1, label)] : undefined;
  if (member === undefined) throw failed(label, `there is no member ${JSON.stringify(name)}`);
  return member;
}

const indexPattern = /^(?:0|[1-9][0-9]*)$/;

function indexOf(name: string, max: number, label: string): number {
  const index = indexPattern.test(name) ? Number(name) : NaN;
  if (!(index <= max)) throw failed(label, `${JSON.stringify(name)} is not an index of the array`);
  return index;
}

/**
 * The message begins with Kubernetes' words. The causes name the operation again, because kubectl
 * prints them.
 */
function failed(operation: string, reason: string): Refused {
  const [label, why] = [operation, reason].map((text) => text.slice(0, shownCharactersMax)) as [string, string];
  return new Refused({
    reason: 'Invalid',
    message: `the server rejected our request due to an error in our request: ${label}: ${why}`,
    details: { causes: [{ reason: 'FieldValueInvalid', message: `${label}: ${why}`, field: 'patch' }] },
  });
}

function tooMuch(message: string): Refusal {
  return { reason: 'RequestEntityTooLarge', message };
}

/** The place of a value in a JSON tree: RFC 6901. `[]` is the whole tree. */
type JsonPointer = readonly string[];

/**
 * Undefined if the text is no pointer. A pointer is empty or begins with '/', and '~' only appears
 * in ~0 and ~1.
 */
function parseJsonPointer(text: string): JsonPointer | undefined {
  if (text === '') return [];
  if (!text.startsWith('/') || /~(?![01])/.test(text)) return undefined;
  return text
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}
