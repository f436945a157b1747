/**
 * The rights by ClusterRoles and ClusterRoleBindings, as in Kubernetes' RBAC, and the callers that
 * a LogicalCluster admits, as in kcp. Pure.
 *
 * Rules only allow, so an object that is missing or cannot be read allows nothing.
 * https://kubernetes.io/docs/reference/access-authn-authz/rbac/
 */
import type { Caller } from '../../domain/caller.js';
import { itemsOf, membersOf, textAt, type Members } from '../../domain/base/members.js';
import { jsonValue } from '../../json/json-value.js';
import { boundedText } from '../../json/value-count.js';

export type Subject = Pick<Caller, 'user' | 'groups'>;

/** A verb on a subresource of an object, or on a path that is no resource. */
export type Action =
  | Readonly<{ verb: string; group: string; resource: string; subresource: string; name: string }>
  | Readonly<{ verb: string; path: string }>;

/** Kubernetes' roles have a few kilobytes; a larger object is not read. */
const bounds = { bytesMax: 64 * 1024, valuesMax: 5_000 };
const rbacGroup = 'rbac.authorization.k8s.io';
const everything = '*';

/** Alternative sets of groups, such as `a,b;c`: a caller must be in all groups of one set. */
const requiredGroups = 'authorization.kcp.io/required-groups';
/** kcp admits members of these groups without the required sets. */
const neverRequired = ['system:kcp:admin', 'system:kcp:tenancy:workspace-bootstrapper'];
const servingPhases = ['Initializing', 'Ready', 'Terminating', 'Deleting'];

export function admits(logicalCluster: Uint8Array, groups: readonly string[]): boolean {
  const members = readMembers(logicalCluster);
  if (!servingPhases.includes(textAt(members, 'status', 'phase') ?? '')) return false;
  const required = textAt(members, 'metadata', 'annotations', requiredGroups);
  const sets = required === undefined ? [] : [...required.split(';'), ...neverRequired];
  return required === undefined || sets.some((set) => set.split(',').every((group) => groups.includes(group)));
}

/** The ClusterRole that the binding gives to the subject; undefined if it gives none. */
export function roleGiven(binding: Uint8Array, { user, groups }: Subject): string | undefined {
  const { subjects, roleRef } = readMembers(binding);
  if (textAt(roleRef, 'apiGroup') !== rbacGroup || textAt(roleRef, 'kind') !== 'ClusterRole') return undefined;
  const isNamed = itemsOf(subjects)
    .map(membersOf)
    .some(({ kind, name }) => (kind === 'User' && name === user) || (kind === 'Group' && groups.some((group) => group === name)));
  return isNamed ? textAt(roleRef, 'name') : undefined;
}

export function roleAllows(role: Uint8Array, action: Action): boolean {
  const { rules } = readMembers(role);
  return itemsOf(rules)
    .map(membersOf)
    .some((rule) => ruleAllows(rule, action));
}

function ruleAllows(rule: Members, action: Action): boolean {
  if (!hasAny(rule['verbs'], everything, action.verb)) return false;
  if ('path' in action) return itemsOf(rule['nonResourceURLs']).some((url) => typeof url === 'string' && covers(url, action.path));
  const { group, resource, subresource, name } = action;
  const names = rule['resourceNames'] ?? [];
  // If `resourceNames` is not a list, it is unclear which objects the rule names.
  if (!Array.isArray(names)) return false;
  return (
    hasAny(rule['apiGroups'], everything, group) &&
    hasAny(rule['resources'], everything, `${resource}/${subresource}`, `*/${subresource}`) &&
    (names.length === 0 || names.includes(name))
  );
}

/** A star at the end matches any suffix. */
function covers(url: string, path: string): boolean {
  let end = url.length;
  while (url[end - 1] === '*') end -= 1;
  return url === path || (end < url.length && path.startsWith(url.slice(0, end)));
}

function hasAny(values: unknown, ...wanted: readonly string[]): boolean {
  return itemsOf(values).some((value) => wanted.some((each) => each === value));
}

function readMembers(body: Uint8Array): Members {
  return membersOf(jsonValue(boundedText(body, bounds) ?? ''));
}
