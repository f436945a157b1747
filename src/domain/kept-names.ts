/**
 * Annotations and labels that stay on a cached copy although its shard knows nothing of them: an operator lists their names, for each type. What a plain write
 * sets under such a name survives the updates that lack it.
 *
 *   a write                          what it does to a listed name of the copy that it lacks
 *   PUT, and what a pusher sends     nothing: a replica's writer sends the whole object, and does not know the name
 *   PATCH                            removes it: the patch was made from the copy, which has it
 *   what comes over a link           removes it: the cache at the other end decides, and has stored the object so
 *
 * KEPT-1 Whoever has a name sets it, whatever was kept. KEPT-2 What is kept stands in the body like everything else, so links, digests, lists, watches and restarts need
 * no rule of their own; it goes with its object.
 *
 * Bound: `namesMax` names of annotations, and as many of labels.
 */
import { labelKeyFlaws } from './label-syntax.js';
import { formatGroupResource, type Resource } from './resource.js';

/** Where names stand in `metadata`. */
export const keptPlaces = ['annotations', 'labels'] as const;

/** A name that is kept on the copies of a type. */
export type KeptName = Readonly<{ group: string; resource: string; name: string }>;

export type NamesOfType = Pick<KeptName, 'group' | 'resource'> & Readonly<Record<(typeof keptPlaces)[number], readonly string[]>>;

/** By the text of the type's group and resource; it covers all identities. */
export type KeptNames = ReadonlyMap<string, NamesOfType>;

const namesMax = 64;
/** They say where an object is, and every copy has its own. */
const placeAnnotations = ['kcp.io/cluster', 'kcp.io/shard', 'kcp.io/path'];
const pattern = /^([a-z0-9][a-z0-9-]*)(?:\.([a-z0-9][a-z0-9.-]*))?=(.+)$/;

export const acceptsKeptNames = `up to ${namesMax} of TYPE=NAME, such as shards.core.kcp.io=example.com/cordon, separated by commas; no annotation of an object's place`;

/** Each once; undefined where one is malformed, or they are too many. */
export function parseKeptNames(texts: readonly string[]): readonly KeptName[] | undefined {
  const names = [...new Set(texts)].filter((text) => text !== '').map(parseKeptName);
  const parsed = names.filter((name) => name !== undefined);
  return parsed.length === names.length && parsed.length <= namesMax ? parsed : undefined;
}

function parseKeptName(text: string): KeptName | undefined {
  const [, resource, group = '', name = ''] = pattern.exec(text) ?? [];
  // Of annotations the case does not matter, as for Kubernetes.
  if (resource === undefined || placeAnnotations.includes(name) || labelKeyFlaws(name.toLowerCase()).length > 0) return undefined;
  return { group: group === 'core' ? '' : group, resource, name };
}

export function keptNames(listed: Readonly<Record<(typeof keptPlaces)[number], readonly KeptName[]>>): KeptNames {
  const byType = new Map<string, NamesOfType>();
  for (const place of keptPlaces)
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
