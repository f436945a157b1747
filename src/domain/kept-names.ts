/**
 * Annotations and labels that stay on a cached copy although its shard does not have them. An
 * operator lists their names for each type. A value that a plain write sets under a listed name
 * survives pushes and updates that lack it. Plain writes set and remove such names
 * (intake/writes/intake.ts).
 *
 * KEPT-1 A listed name that was set on the copy stays if a push lacks the name. A value in the push
 *    replaces the kept value, and the name belongs to the shard from then on.
 * KEPT-2 The stored body holds both the kept values and the list of names that were set on the copy
 *    (`keptAnnotation`). So links, digests, lists, watches and restarts need no rule of their own,
 *    and a kept name is removed with its object. Only plain writes that keep names change the list:
 *    the cache drops every list that a shard or a client sends.
 * KEPT-3 A body that arrives over a link is stored unchanged: the cache to which the shard is
 *    written decides.
 *
 * Bound: `namesMax` names of annotations, and as many of labels; `keptCharactersMax` on one copy.
 */
import { labelKeyFlaws } from './syntax/label-syntax.js';
import { formatGroupResource, type Resource } from './resource.js';

export const keptMaps = ['annotations', 'labels'] as const;

export type KeptName = Readonly<{ group: string; resource: string; name: string }>;

export type NamesOfType = Pick<KeptName, 'group' | 'resource'> & Readonly<Record<(typeof keptMaps)[number], readonly string[]>>;

/** By group and resource, as `formatGroupResource` writes them; covers all identities. */
export type KeptNames = ReadonlyMap<string, NamesOfType>;

/** Lists the names that were set on the copy. A copy without this annotation has no kept names. */
export const keptAnnotation = 'strata/kept';

const namesMax = 64;
/** Bounds the kept names of one copy and their values together. */
export const keptCharactersMax = 4 * 1024;
/**
 * The most that caches add to an object: its kept names and its place. At every tier, the limits of
 * an object from another cache are larger by this. So no cache refuses an object that another cache
 * accepted from a shard and then extended. JSON takes at most six bytes for a character.
 */
export const addedMax = { bytes: 8 * keptCharactersMax, members: 4 * namesMax };
export const nothingAdded: typeof addedMax = { bytes: 0, members: 0 };
/** Annotations that a cache itself writes on copies, or reads from them. */
const ownAnnotations = ['kcp.io/cluster', 'kcp.io/shard', 'kcp.io/path', keptAnnotation];
const pattern = /^([a-z0-9][a-z0-9-]*)(?:\.([a-z0-9][a-z0-9.-]*))?=(.+)$/;

export const acceptsKeptNames = `up to ${namesMax} of TYPE=NAME, such as shards.core.kcp.io=example.com/cordon, separated by commas; none that the cache sets itself`;

/** Without duplicates. Returns undefined if a text is malformed, or there are too many. */
export function parseKeptNames(texts: readonly string[]): readonly KeptName[] | undefined {
  const names = [...new Set(texts)].filter((text) => text !== '').map(parseKeptName);
  const parsed = names.filter((name) => name !== undefined);
  return parsed.length === names.length && parsed.length <= namesMax ? parsed : undefined;
}

function parseKeptName(text: string): KeptName | undefined {
  const [, resource, group = '', name = ''] = pattern.exec(text) ?? [];
  // As in Kubernetes, an annotation key may have upper case.
  if (resource === undefined || ownAnnotations.includes(name) || labelKeyFlaws(name.toLowerCase()).length > 0) return undefined;
  return { group: group === 'core' ? '' : group, resource, name };
}

export function keptNames(listed: Readonly<Record<(typeof keptMaps)[number], readonly KeptName[]>>): KeptNames {
  const byType = new Map<string, NamesOfType>();
  for (const place of keptMaps)
    for (const { group, resource, name } of listed[place]) {
      const type = formatGroupResource({ group, resource });
      const known = byType.get(type) ?? { group, resource, annotations: [], labels: [] };
      byType.set(type, { ...known, [place]: [...known[place], name] });
    }
  return byType;
}

export function namesOfType(names: KeptNames, resource: Resource): NamesOfType | undefined {
  return names.size === 0 ? undefined : names.get(formatGroupResource(resource));
}
