/**
 * RFC 6902, with Kubernetes' test for null, done the obvious way: on copies of plain values, one
 * operation after the other. The result is undefined if the patch fails.
 */
import { isDeepStrictEqual } from 'node:util';

export type PlainOperation =
  | Readonly<{ op: 'add' | 'replace' | 'test'; path: string; value: unknown }>
  | Readonly<{ op: 'remove'; path: string }>
  | Readonly<{ op: 'move' | 'copy'; path: string; from: string }>;

type Holder = { value: unknown };

export function patchedPlainly(target: unknown, patch: readonly PlainOperation[]): Holder | undefined {
  const root: Holder = { value: structuredClone(target) };
  return patch.every((operation) => apply(root, operation)) ? root : undefined;
}

function apply(root: Holder, operation: PlainOperation): boolean {
  const path = namesOf(operation.path);
  switch (operation.op) {
    case 'add':
      return add(root, path, structuredClone(operation.value));
    case 'replace':
      return path.length === 0
        ? add(root, path, structuredClone(operation.value))
        : get(root, path) !== undefined && replace(root, path, structuredClone(operation.value));
    case 'test': {
      const found = get(root, path);
      // As in Kubernetes, a test for null passes if the member is absent.
      const isLacking = found === undefined && path.length > 0 && isRecord(get(root, path.slice(0, -1))?.value);
      return isLacking ? operation.value === null : found !== undefined && isDeepStrictEqual(found.value, operation.value);
    }
    case 'remove':
      return path.length > 0 && get(root, path) !== undefined && remove(root, path);
    default: {
      const from = namesOf(operation.from);
      const found = get(root, from);
      if (found === undefined) return false;
      const value: unknown = structuredClone(found.value);
      if (operation.op === 'copy') return add(root, path, value);
      const isInside = from.every((name, depth) => name === path[depth]);
      if (isInside) return from.length === path.length;
      return remove(root, from) && add(root, path, value);
    }
  }
}

function namesOf(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function get(root: Holder, path: readonly string[]): Holder | undefined {
  let found: Holder | undefined = root;
  for (const name of path) found = found && memberOf(found.value, name);
  return found;
}

function memberOf(value: unknown, name: string): Holder | undefined {
  if (Array.isArray(value))
    return /^(0|[1-9]\d*)$/.test(name) && Number(name) < value.length ? { value: value[Number(name)] as unknown } : undefined;
  return isRecord(value) && Object.hasOwn(value, name) ? { value: value[name] } : undefined;
}

function add(root: Holder, path: readonly string[], value: unknown): boolean {
  const name = path.at(-1);
  if (name === undefined) {
    root.value = value;
    return true;
  }
  const parent = get(root, path.slice(0, -1))?.value;
  if (Array.isArray(parent)) {
    const index = name === '-' ? parent.length : /^(0|[1-9]\d*)$/.test(name) ? Number(name) : Infinity;
    if (index > parent.length) return false;
    parent.splice(index, 0, value);
    return true;
  }
  if (!isRecord(parent)) return false;
  parent[name] = value;
  return true;
}

function replace(root: Holder, path: readonly string[], value: unknown): boolean {
  const parent = get(root, path.slice(0, -1))?.value as Record<string, unknown>;
  parent[path.at(-1) ?? ''] = value;
  return true;
}

function remove(root: Holder, path: readonly string[]): boolean {
  const parent = get(root, path.slice(0, -1))?.value;
  const name = path.at(-1);
  if (name === undefined) return false;
  if (Array.isArray(parent)) parent.splice(Number(name), 1);
  else delete (parent as Record<string, unknown>)[name];
  return true;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
