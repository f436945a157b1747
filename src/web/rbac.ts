/**
 * What ClusterRoles allow whom ClusterRoleBindings name, as Kubernetes' RBAC decides it, and whom a LogicalCluster admits, as kcp does. Pure.
 *
 * Rules only ever allow. So what cannot be read, and what is not here, gives nothing.
 * https://kubernetes.io/docs/reference/access-authn-authz/rbac/
 */
import type { Caller } from '../domain/caller.js';
import { itemsOf, membersOf, type Members } from '../domain/members.js';
import { textAt } from '../domain/text-at.js';
import { jsonValue } from '../json/json-value.js';
import { boundedText } from '../json/value-count.js';

export type Subject = Pick<Caller, 'user' | 'groups'>;

/** What somebody wants to do: with a subresource of an object, or with a path that is no resource's. */
export type Action =
  | Readonly<{ verb: string; group: string; resource: string; subresource: string; name: string }>
  | Readonly<{ verb: string; path: string }>;

/** Kubernetes' roles have a few kilobytes; what is larger is not read. */
const bounds = { bytesMax: 64 * 1024, valuesMax: 5_000 };
const rbacGroup = 'rbac.authorization.k8s.io';
const everything = '*';

/** Sets of groups, of which one must be whole: `a,b;c`. */
const requiredGroups = 'authorization.kcp.io/required-groups';
/** kcp lets these in whatever is required. */
const neverRequired = ['system:kcp:admin', 'system:kcp:tenancy:workspace-bootstrapper'];
/** In which a logical cluster has content for others. */
const servingPhases = ['Initializing', 'Ready', 'Terminating', 'Deleting'];

/** Whether a LogicalCluster has content for members of these groups. */
export function admits(logicalCluster: Uint8Array, groups: readonly string[]): boolean {
  const members = readMembers(logicalCluster);
  if (!servingPhases.includes(textAt(members, 'status', 'phase') ?? '')) return false;
  const required = textAt(members, 'metadata', 'annotations', requiredGroups);
  const sets = required === undefined ? [] : [...required.split(';'), ...neverRequired];
  return required === undefined || sets.some((set) => set.split(',').every((group) => groups.includes(group)));
}

/** The ClusterRole that a ClusterRoleBinding gives to the subject; undefined where it gives it to others. */
export function roleGiven(binding: Uint8Array, { user, groups }: Subject): string | undefined {
  const { subjects, roleRef } = readMembers(binding);
  if (textAt(roleRef, 'apiGroup') !== rbacGroup || textAt(roleRef, 'kind') !== 'ClusterRole') return undefined;
  const isNamed = itemsOf(subjects)
    .map(membersOf)
    .some(({ kind, name }) => (kind === 'User' && name === user) || (kind === 'Group' && groups.some((group) => group === name)));
  return isNamed ? textAt(roleRef, 'name') : undefined;
}

/** Whether a rule of the ClusterRole allows it. */
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
  // Where it is no list, nobody knows which are meant.
  if (!Array.isArray(names)) return false;
  return (
    hasAny(rule['apiGroups'], everything, group) &&
    hasAny(rule['resources'], everything, `${resource}/${subresource}`, `*/${subresource}`) &&
    (names.length === 0 || names.includes(name))
  );
}

/** A star at the end stands for any rest. */
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
