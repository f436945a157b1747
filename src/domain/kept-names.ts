/**
 * Annotations and labels that stay on a cached copy although its shard knows nothing of them: an operator lists their names, for each type. What a plain write
 * sets under such a name survives the updates that lack it. How plain writes set and remove them: intake/kept-writes.ts.
 *
 * KEPT-1 What a pusher lacks stays if it was set on the copy; what a pusher has replaces that, and is the shard's from then on.
 * KEPT-2 What is kept stands in the stored body, and so does which names were set on the copy (`keptAnnotation`). So links, digests, lists, watches and restarts need no rule of their own, and
 *    it goes with its object.
 * KEPT-3 What comes over a link is stored as it comes: the cache at which the shard is written decides.
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

/** Names what was set on the copy. A copy without it has nothing that is kept. */
export const keptAnnotation = 'strata/kept';

const namesMax = 64;
/** What a cache itself writes on every copy, or reads there. */
const ownAnnotations = ['kcp.io/cluster', 'kcp.io/shard', 'kcp.io/path', keptAnnotation];
const pattern = /^([a-z0-9][a-z0-9-]*)(?:\.([a-z0-9][a-z0-9.-]*))?=(.+)$/;

export const acceptsKeptNames = `up to ${namesMax} of TYPE=NAME, such as shards.core.kcp.io=example.com/cordon, separated by commas; none that the cache sets itself`;

/** Each once; undefined where one is malformed, or they are too many. */
export function parseKeptNames(texts: readonly string[]): readonly KeptName[] | undefined {
  const names = [...new Set(texts)].filter((text) => text !== '').map(parseKeptName);
  const parsed = names.filter((name) => name !== undefined);
  return parsed.length === names.length && parsed.length <= namesMax ? parsed : undefined;
}

function parseKeptName(text: string): KeptName | undefined {
  const [, resource, group = '', name = ''] = pattern.exec(text) ?? [];
  // Of annotations the case does not matter, as for Kubernetes.
  if (resource === undefined || ownAnnotations.includes(name) || labelKeyFlaws(name.toLowerCase()).length > 0) return undefined;
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
