/**
 * JSON Merge Patch, RFC 7386: null removes a member, an object merges, any other value replaces.
 *
 * The work is linear in the patch and in the members of the objects on its paths; all else is
 * shared, not copied. The packages for this (json-merge-patch, fast-json-merge…) need plain objects
 * and recurse.
 */
import { isJsonObject } from './json-tree.js';
import type { JsonObject, JsonTree } from './json-tree.js';

export function applyMergePatch(target: JsonTree, patch: JsonTree): JsonTree {
  if (!isJsonObject(patch)) return patch;

  const merged = membersOf(target);
  const waiting: [Map<string, JsonTree>, JsonObject][] = [[merged, patch]];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [into, changes] = next;
    for (const [name, value] of changes) {
      if (value === null) {
        into.delete(name);
      } else if (isJsonObject(value)) {
        const member = membersOf(into.get(name));
        into.set(name, member);
        waiting.push([member, value]);
      } else {
        into.set(name, value);
      }
    }
  }
  return merged;
}

function membersOf(tree: JsonTree | undefined): Map<string, JsonTree> {
  return new Map(isJsonObject(tree) ? tree : []);
}
