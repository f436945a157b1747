/**
 * `strata caches …`: lists the parent and the children that a cache knows, and forgets a child that
 * is gone for good.
 */
import { formatDuration } from '../config/options/quantity.js';
import { operatorOptions } from '../config/options/command-options.js';
import { SettingsError } from '../config/settings-error.js';
import { childNeighbour, parseCacheName, type Neighbour } from '../domain/via.js';
import { parseStatusReport, type LinkConnection, type LinkStatus, type StatusReport } from '../domain/status.js';
import { alignedRows } from './terminal-text.js';
import { answered, requestCache, requestStatus, countOf } from './cache-request.js';
import { command, type Command } from './command.js';

/**
 * `shards`, `objects`: received from that cache. `claims`: the shards that the cache claims while
 * it is connected.
 */
export type KnownCache = Readonly<{
  cache: Neighbour;
  id: string | null;
  connection: LinkConnection;
  shards: number;
  objects: number;
  claims: number;
}>;

const nothing = '–';

export const cachesList: Command = command({
  words: ['caches', 'list'],
  operands: '',
  help: 'List the caches that a cache knows as its parent and its children',
  options: operatorOptions,
  run: async ({ options }, { print, clock }) => {
    const caches = knownCaches(parseStatusReport(await requestStatus({ clock }, options)));
    print(options.output === 'json' ? `${JSON.stringify(caches)}\n` : formatCaches(caches));
  },
});

export const cachesForget: Command = command({
  words: ['caches', 'forget'],
  operands: '<name>',
  help: 'Forget a child that is gone for good: its id becomes free, and its shards belong to no cache',
  options: operatorOptions,
  run: async ({ operands: [text = ''], options }, { print, clock }) => {
    const name = parseCacheName(text);
    if (name === undefined) throw new SettingsError([`${JSON.stringify(text)} is not the name of a cache`]);
    const answer = await requestCache({ clock }, options, { method: 'DELETE', path: `/services/cache/caches/${name}` });
    const shards = countOf(answer, 'shards', 'shards are left');
    print(answered(options, answer, `Forgot the cache ${name}; its ${shards} shards belong to no cache now.`));
  },
});

export function knownCaches({ tree, shards }: StatusReport): readonly KnownCache[] {
  const known = (cache: Neighbour, { cacheId, connection, receiving }: LinkStatus): KnownCache => {
    const slices = shards.filter(({ via }) => via === cache);
    const objects = slices.flatMap((shard) => shard.slices).reduce((sum, slice) => sum + slice.objects, 0);
    return { cache, id: cacheId, connection, shards: slices.length, objects, claims: receiving.claims };
  };
  if (tree === undefined) return [];
  const above = tree.parent === null ? [] : [known('parent', tree.parent)];
  return [...above, ...tree.children.map((child) => known(childNeighbour(child.name), child))];
}

export function formatCaches(caches: readonly KnownCache[]): string {
  if (caches.length === 0) return 'no caches yet\n';
  const rows = caches.map(({ cache, id, connection: { kind, forMs }, shards, objects, claims }) => [
    cache,
    id ?? nothing,
    `${kind} ${formatDuration(forMs)}`,
    ...[shards, objects, claims].map(String),
  ]);
  return `${alignedRows([['CACHE', 'ID', 'CONNECTION', 'SHARDS', 'OBJECTS', 'CLAIMS'], ...rows])}\n`;
}
