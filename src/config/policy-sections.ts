/**
 * The link policies of the configuration file: which objects pass the link to the parent and those
 * to the children.
 *
 *   parent:
 *     forward: […]                          up
 *     follow: […]                           down
 *   children:
 *     NAME: {accept: […], offer: […]}       up, down; '*' for all without an entry of their own
 */
import { parseCacheName } from '../domain/cache-name.js';
import { parseLinkPolicy, type LinkPolicy, type KeyPath } from '../domain/link-policy.js';
import type { ChildPolicies, LinkPolicies } from '../domain/link-policies.js';
import { isObject } from '../domain/members.js';
import { suggestion } from './suggestion.js';

/** The keys of the parent section that are not options. */
export const parentPolicyKeys: readonly string[] = ['forward', 'follow'];
export const childrenSection = 'children';

type Report = (path: KeyPath, message: string) => void;

/**
 * `parent` and `children`: the content of these sections in the file. Every error is reported with
 * its place in the file.
 */
export function readPolicies({ parent, children }: Readonly<{ parent: unknown; children: unknown }>, report: Report): LinkPolicies {
  const ofParent = isObject(parent) ? parent : {};
  return {
    forward: readPolicy(ofParent['forward'], ['parent', 'forward'], report),
    follow: readPolicy(ofParent['follow'], ['parent', 'follow'], report),
    children: readChildren(children, report),
  };
}

function readChildren(value: unknown, report: Report): ReadonlyMap<string, ChildPolicies> {
  const children = new Map<string, ChildPolicies>();
  if (value === undefined || value === null) return children;
  if (!isObject(value)) report([childrenSection], 'must be a mapping of names to policies');
  else for (const [name, policies] of Object.entries(value)) children.set(name, readChild(name, policies, report));
  return children;
}

function readChild(name: string, value: unknown, report: Report): ChildPolicies {
  const path = [childrenSection, name];
  if (name !== '*' && parseCacheName(name) === undefined) report(path, `${JSON.stringify(name)} is not the name of a cache`);
  if (value !== null && !isObject(value)) report(path, 'must be a mapping of accept and offer to rules');
  const given = isObject(value) ? value : {};
  const known = ['accept', 'offer'];
  for (const key of Object.keys(given).filter((key) => !known.includes(key)))
    report([...path, key], `unknown key ${key}${suggestion(key, known)}`);
  return {
    accept: readPolicy(given['accept'], [...path, 'accept'], report),
    offer: readPolicy(given['offer'], [...path, 'offer'], report),
  };
}

function readPolicy(value: unknown, path: KeyPath, report: Report): LinkPolicy {
  const policy = parseLinkPolicy(value, path);
  if (policy.kind === 'parsed') return policy.policy;
  for (const problem of policy.problems) report(problem.path, problem.message);
  return [];
}
