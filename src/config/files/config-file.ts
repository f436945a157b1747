/**
 * The configuration file: values of options by their YAML names, and link policies. An unknown key
 * is an error with its line. All errors are reported at once.
 */
import { isObject } from '../../domain/base/members.js';
import { parseCacheName } from '../../domain/via.js';
import { ConfigSyntaxError, parseConfigDocument, type ConfigDocument } from '../../json/config-document.js';
import type { ChildPolicies, LinkPolicies } from '../../domain/link-policies.js';
import { parseLinkPolicy, type LinkPolicy, type KeyPath } from '../../domain/link-policy.js';
import type { Given } from '../command-line/command-values.js';
import type { Option } from '../options/option.js';
import { options } from '../options/options.js';
import { suggestion } from '../command-line/nearest.js';

/** The keys of the parent section that are not options. */
const parentPolicyKeys: readonly string[] = ['forward', 'follow'];
const childrenSection = 'children';

type Report = (path: KeyPath, message: string) => void;

/**
 * The link policies of the configuration file: which objects cross the link to the parent, and
 * which cross the links to the children.
 *
 *   parent:
 *     forward: […]                          up
 *     follow: […]                           down
 *   children:
 *     NAME: {accept: […], offer: […]}       up, down; '*' for all without an entry of their own
 *
 * `parent` and `children`: the content of these sections in the file. Every error is reported with
 * its place in the file.
 */
function readPolicies({ parent, children }: Readonly<{ parent: unknown; children: unknown }>, report: Report): LinkPolicies {
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

export type ConfigFile = Readonly<{ options: ReadonlyMap<string, Given>; policies: LinkPolicies }>;

export const noConfigFile: ConfigFile = {
  options: new Map(),
  policies: readPolicies({ parent: undefined, children: undefined }, () => {}),
};

const optionKeys = Object.values<Option<unknown>>(options).map(({ yaml }) => yaml);
const keys = [...optionKeys, ...parentPolicyKeys.map((key) => `parent.${key}`)];
const sections = [...new Set(keys.map((key) => key.split('.')[0]!)), childrenSection];

/** Adds every error in the file to `problems`. */
export function readConfigFile(path: string, readFile: (path: string) => string, problems: string[]): ConfigFile {
  let document: ConfigDocument;
  try {
    document = parseConfigDocument(readFile(path));
  } catch (error) {
    const where = error instanceof ConfigSyntaxError && error.line !== undefined ? `${path} line ${error.line}` : path;
    problems.push(`${where}: ${(error as Error).message}`);
    return noConfigFile;
  }

  const given = new Map<string, Given>();
  const at = (place: readonly (string | number)[]): string => `${path} line ${document.lineOf(place)}`;
  const contents = new Map(entries(document.value, path, 'the file', problems));
  for (const [section, content] of contents) {
    if (section === childrenSection) continue;
    if (!sections.includes(section)) {
      problems.push(`${at([section])}: unknown key ${section}${suggestion(section, sections)}`);
      continue;
    }
    for (const [key, value] of entries(content, at([section]), section, problems)) {
      const name = `${section}.${key}`;
      const source = at([section, key]);
      if (!keys.includes(name)) problems.push(`${source}: unknown key ${name}${suggestion(name, keys)}`);
      else if (value !== null && optionKeys.includes(name)) given.set(name, { value, source: `${source}: ${name}` });
    }
  }
  const policies = readPolicies({ parent: contents.get('parent'), children: contents.get(childrenSection) }, (place, message) =>
    problems.push(`${at(place)}: ${formatPlace(place)}: ${message}`),
  );
  return { options: given, policies };
}

/** Formats a place like `children.eu-1.offer[2].types`. */
function formatPlace(place: readonly (string | number)[]): string {
  return place.map((step, i) => (typeof step === 'number' ? `[${step}]` : `${i === 0 ? '' : '.'}${step}`)).join('');
}

/** An empty file or section is valid and sets nothing. */
function entries(value: unknown, source: string, what: string, problems: string[]): [string, unknown][] {
  if (value === null || value === undefined) return [];
  if (typeof value === 'object' && !Array.isArray(value)) return Object.entries(value);
  problems.push(`${source}: ${what} must be a mapping of keys to values`);
  return [];
}
