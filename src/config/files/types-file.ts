/**
 * The file of `--types-file`: further types, and changes to the types of the built-in table. A type
 * is written like a CustomResourceDefinition:
 *
 *   types:
 *     - group: cache.kcp.io
 *       plural: replicationendpointslices
 *       kind: ReplicationEndpointSlice
 *       scope: Cluster                     or Namespaced
 *       replicated: always                 or annotated (internal.kcp.io/replicate), or never
 *       identityOf: cache.kcp.io           kcp's APIExport; wildcard reads need its identity
 *       shortNames: [res]
 *       categories: [kcp]
 *       versions:                          in order of preference; agents read the first
 *         - name: v1alpha1
 *           additionalPrinterColumns: [{name: Export, type: string, jsonPath: .spec.export.name}]
 *
 * An entry for a built-in type changes only the keys that it has. The entry cannot change the kind
 * or scope, because stored objects depend on them. ClusterCachedResource cannot be changed at
 * all, because its objects declare types.
 */
import { plainType, type Column, type ServedVersion, type TableType } from '../../domain/catalogue/catalogue.js';
import { kcpTypes } from '../../domain/catalogue/catalogue-kcp.js';
import { coreAlias, isDeclaring } from '../../domain/catalogue/declaration.js';
import type { KeyPath } from '../../domain/link-policy.js';
import { isObject, type Members } from '../../domain/base/members.js';
import { dnsLabelFlaws, dnsSubdomainFlaws } from '../../domain/syntax/name-syntax.js';
import { pathGroup } from '../../domain/path-entry.js';
import { formatGroupResource } from '../../domain/resource.js';
import { parseJsonPath } from '../../json/json-path.js';
import { checkFileText, readFileText, type Problem } from './checked-file.js';
import { emptied, SettingsError } from '../settings-error.js';
import { suggestion } from '../command-line/nearest.js';

/** The server parses the file while requests wait: a megabyte takes about a second. */
const charactersMax = 1024 * 1024;
const typesMax = 1_000;
const versionsMax = 20;
const columnsMax = 50;
const namesMax = 20;
const textCharactersMax = 1_024;
const kindPattern = /^[A-Za-z][A-Za-z0-9]{0,62}$/;

const typeKeys = ['group', 'plural', 'kind', 'scope', 'singular', 'shortNames', 'categories', 'versions', 'replicated', 'identityOf'];
const versionKeys = ['name', 'additionalPrinterColumns'];
const columnKeys = ['name', 'type', 'format', 'description', 'priority', 'jsonPath'];
const columnTypes = ['string', 'integer', 'number', 'boolean', 'date'];

export class TypesFile {
  readonly #file: string | undefined;
  #text = '';
  #types: readonly TableType[] = kcpTypes;

  /** Reads the file. Throws SettingsError with all errors, by line. */
  constructor(file: string | undefined) {
    this.#file = file;
    this.#reload(() => {});
  }

  /** The built-in table with the changes of the file. */
  get types(): readonly TableType[] {
    return this.#types;
  }

  /**
   * Polls the file (certificates/polled-files.ts); undefined without a file. `use` gets the types
   * when they have changed.
   */
  polled(use: (types: readonly TableType[]) => void) {
    if (this.#file === undefined) return undefined;
    const events = { reloaded: 'types.reloaded', failed: 'types.reload-failed' };
    return { events, file: this.#file, take: () => this.#reload(use) };
  }

  /**
   * Returns whether the text has changed. Throws SettingsError and the errors of `use`, and then
   * changes nothing.
   */
  #reload(use: (types: readonly TableType[]) => void): boolean {
    if (this.#file === undefined) return false;
    const text = readFileText(this.#file);
    if (text === this.#text) return false;
    if (text === '') throw new SettingsError([emptied(this.#file)]);
    if (text.length > charactersMax) throw new SettingsError([`${this.#file}: has more than ${charactersMax} characters`]);
    const types = checkFileText(this.#file, text, checkTypes);
    use(types);
    [this.#text, this.#types] = [text, types];
    return true;
  }
}

/** `given`: the parsed content of the file. An empty file changes nothing. */
export function checkTypes(given: unknown): Readonly<{ value: readonly TableType[]; problems: readonly Problem[] }> {
  const reader = new TypesReader();
  const entries = reader.list(reader.members(given ?? {}, [], ['types'])['types'] ?? [], ['types'], typesMax);
  const table = new Map(kcpTypes.map((type) => [formatGroupResource(type), type]));
  const seen = new Set<string>();
  const places = new Map<TableType, KeyPath>();
  for (const [index, entry] of entries.entries()) {
    const path = ['types', index];
    const members = reader.members(entry, path, typeKeys);
    const group = reader.name(members['group'], [...path, 'group'], groupFlaws) ?? '';
    const resource = reader.name(members['plural'], [...path, 'plural'], dnsLabelFlaws) ?? '';
    const name = formatGroupResource({ group, resource });
    if (seen.has(name)) reader.report([...path, 'plural'], `the file has ${name} twice`);
    seen.add(name);
    const former = table.get(name);
    const type = typeOf(reader, members, { path, group, resource, former });
    table.set(name, type);
    places.set(type, path);
  }
  const types = [...table.values()];
  if (reader.problems.length === 0)
    reportTaken(
      reader,
      types.filter((type) => !places.has(type)),
      places,
    );
  return { value: types, problems: reader.problems };
}

/**
 * Checks names by the rule of Kubernetes. Within a group, each plural, singular or short name
 * belongs to one type only, and so does each kind or list kind. `places`: the path of each type in
 * the file, in the order of the file.
 */
function reportTaken(reader: TypesReader, builtIn: readonly TableType[], places: ReadonlyMap<TableType, KeyPath>): void {
  const owners = new Map<string, string>();
  for (const type of [...builtIn, ...places.keys()]) {
    const owner = formatGroupResource(type);
    for (const { key, name, among } of namesOf(type)) {
      const place = `${type.group}/${among}/${name}`;
      const first = owners.get(place) ?? owner;
      owners.set(place, first);
      if (first !== owner) reader.report([...(places.get(type) ?? []), key], `${name} is already a name of ${first}`);
    }
  }
}

/** `key`: the key of the entry that sets `name`. */
function namesOf({ resource, singular, shortNames, kind, listKind }: TableType) {
  return [
    { key: 'plural', name: resource, among: 'resources' },
    { key: 'singular', name: singular, among: 'resources' },
    ...shortNames.map((name) => ({ key: 'shortNames', name, among: 'resources' })),
    { key: 'kind', name: kind, among: 'kinds' },
    { key: 'kind', name: listKind, among: 'kinds' },
  ];
}

type Entry = Readonly<{ path: KeyPath; group: string; resource: string; former: TableType | undefined }>;

function typeOf(reader: TypesReader, members: Members, { path, group, resource, former }: Entry): TableType {
  if (isDeclaring({ group, resource }))
    reader.report([...path, 'plural'], 'this type is built in and cannot be changed: its objects declare types');
  const at = (key: string): KeyPath => [...path, key];
  const kind = reader.optional(members['kind'], former?.kind, (given) => reader.matching(given, at('kind'), kindPattern));
  const scope = reader.optional(members['scope'], former && scopeOf(former), (given) =>
    reader.oneOf(given, at('scope'), ['Cluster', 'Namespaced']),
  );
  const replicated = reader.optional(members['replicated'], former?.replicated, (given) =>
    reader.oneOf(given, at('replicated'), ['always', 'annotated', 'never'] as const),
  );
  const versions = reader.optional(members['versions'], former?.versions, (given) => versionsOf(reader, given, at('versions')));
  for (const [key, value] of Object.entries({ kind, scope, replicated, versions }))
    if (value === undefined && members[key] === undefined) reader.report(path, `${key} is missing`);
  if (former !== undefined && (kind !== former.kind || scope !== scopeOf(former)))
    reader.report(path, `the built-in type is a ${former.kind} of scope ${scopeOf(former)}, and neither can be changed`);
  const names = (key: string, all: readonly string[]): readonly string[] =>
    reader.optional(members[key], all, (given) =>
      reader.list(given, at(key), namesMax).map((each, i) => reader.name(each, [...at(key), i], dnsLabelFlaws) ?? ''),
    ) ?? all;
  const base = former ?? plainType({ group, resource, identity: '' }, kind ?? '', []);
  return {
    ...base,
    singular: reader.optional(members['singular'], base.singular, (given) => reader.name(given, at('singular'), dnsLabelFlaws)) ?? '',
    shortNames: names('shortNames', base.shortNames),
    categories: names('categories', base.categories),
    namespaced: scope === 'Namespaced',
    versions: versions ?? [],
    storageVersion: versions?.[0]?.name ?? '',
    replicated: replicated ?? 'never',
    identityOf: reader.optional(members['identityOf'], former?.identityOf, (given) =>
      reader.name(given, at('identityOf'), dnsSubdomainFlaws),
    ),
  };
}

function versionsOf(reader: TypesReader, given: unknown, path: KeyPath): readonly ServedVersion[] {
  const versions = reader.list(given, path, versionsMax).map((each, i): ServedVersion => {
    const at = [...path, i];
    const members = reader.members(each, at, versionKeys);
    const columns = reader.list(members['additionalPrinterColumns'] ?? [], [...at, 'additionalPrinterColumns'], columnsMax);
    return {
      name: reader.name(members['name'], [...at, 'name'], dnsLabelFlaws) ?? '',
      columns: columns.map((column, k) => columnOf(reader, column, [...at, 'additionalPrinterColumns', k])),
    };
  });
  if (versions.length === 0) reader.report(path, 'must name a version');
  if (new Set(versions.map(({ name }) => name)).size < versions.length) reader.report(path, 'names a version twice');
  return versions;
}

function columnOf(reader: TypesReader, given: unknown, path: KeyPath): Column {
  const members = reader.members(given, path, columnKeys);
  const text = (key: string): string | undefined => reader.optional(members[key], undefined, (value) => reader.text(value, [...path, key]));
  const jsonPath = reader.text(members['jsonPath'], [...path, 'jsonPath']) ?? '';
  if (jsonPath !== '' && parseJsonPath(jsonPath) === undefined)
    reader.report([...path, 'jsonPath'], 'is not a JSONPath that a printer column can have');
  const [format, description] = [text('format'), text('description')];
  const { priority } = members;
  if (priority !== undefined && !Number.isInteger(priority)) reader.report([...path, 'priority'], 'must be a whole number');
  return {
    name: reader.text(members['name'], [...path, 'name']) ?? '',
    type: reader.oneOf(members['type'], [...path, 'type'], columnTypes) ?? '',
    ...(format !== undefined && { format }),
    ...(description !== undefined && { description }),
    ...(typeof priority === 'number' && { priority }),
    jsonPath,
  };
}

function scopeOf({ namespaced }: TableType): 'Cluster' | 'Namespaced' {
  return namespaced ? 'Namespaced' : 'Cluster';
}

/** In the file the core group is '', as in Kubernetes. */
function groupFlaws(group: string): readonly string[] {
  if (group === '') return [];
  if (group === coreAlias) return ["the core group is ''"];
  return group === pathGroup ? ['the group is Strata’s own'] : dnsSubdomainFlaws(group);
}

class TypesReader {
  readonly problems: Problem[] = [];

  report(path: KeyPath, message: string): undefined {
    this.problems.push({ path, message });
  }

  members(given: unknown, path: KeyPath, known: readonly string[]): Members {
    if (!isObject(given)) {
      this.report(path, 'must be a mapping');
      return {};
    }
    for (const key of Object.keys(given))
      if (!known.includes(key)) this.report([...path, key], `unknown key ${key}${suggestion(key, known)}`);
    return given;
  }

  list(given: unknown, path: KeyPath, max: number): readonly unknown[] {
    if (Array.isArray(given) && given.length <= max) return given;
    this.report(path, Array.isArray(given) ? `has more than ${max} members` : 'must be a list');
    return [];
  }

  /** The result of `read`; `absent` if nothing is given. A null is malformed. */
  optional<Value>(given: unknown, absent: Value | undefined, read: (given: unknown) => Value | undefined): Value | undefined {
    return given === undefined ? absent : read(given);
  }

  text(given: unknown, path: KeyPath): string | undefined {
    if (typeof given === 'string' && given !== '' && given.length <= textCharactersMax) return given;
    return this.report(path, `must be a string of 1 to ${textCharactersMax} characters`);
  }

  name(given: unknown, path: KeyPath, flawsOf: (name: string) => readonly string[]): string | undefined {
    if (typeof given !== 'string') return this.report(path, 'must be a string');
    const flaws = flawsOf(given);
    for (const flaw of flaws) this.report(path, flaw);
    return flaws.length === 0 ? given : undefined;
  }

  matching(given: unknown, path: KeyPath, pattern: RegExp): string | undefined {
    return typeof given === 'string' && pattern.test(given) ? given : this.report(path, `must match ${pattern.source}`);
  }

  oneOf<Word extends string>(given: unknown, path: KeyPath, words: readonly Word[]): Word | undefined {
    return words.find((word) => word === given) ?? this.report(path, `must be one of ${words.join(', ')}`);
  }
}
