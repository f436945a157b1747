/**
 * The configuration file: values of options by their YAML names, and link policies. An unknown key
 * is an error with its line. All errors are reported at once.
 */
import { ConfigSyntaxError, parseConfigDocument, type ConfigDocument } from '../json/config-document.js';
import type { LinkPolicies } from '../domain/link-policies.js';
import type { Given } from './given.js';
import type { Option } from './option.js';
import { options } from './options.js';
import { childrenSection, parentPolicyKeys, readPolicies } from './policy-sections.js';
import { suggestion } from './suggestion.js';

export type ConfigFile = Readonly<{ options: ReadonlyMap<string, Given>; policies: LinkPolicies }>;

/** The configuration of a server without a file. */
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
