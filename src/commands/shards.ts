/** `strata shards …`: which shards a cache has heard of, and ending one: its objects, then its name. */
import { operatorOptions } from '../config/command-options.js';
import { SettingsError } from '../config/settings-error.js';
import { CacheError } from '../domain/errors.js';
import { parseShardName } from '../domain/shard.js';
import { askCache } from './ask-cache.js';
import { command, type Command } from './command.js';
import { parseStatusReport } from './parse-status-report.js';
import { formatShardList } from './status-table.js';

export const shardsList: Command = command({
  words: ['shards', 'list'],
  operands: '',
  help: 'List the shards a cache has heard of',
  options: operatorOptions,
  run: async ({ options }, { print, clock }) => {
    print(formatShardList(parseStatusReport(await askCache({ clock }, options, { method: 'GET', path: '/services/cache/status' }))));
  },
});

export const shardsRemove: Command = command({
  words: ['shards', 'remove'],
  operands: '<name>',
  help: 'Remove a shard from a cache: its objects leave it, and whoever pushes for it now is shut out',
  options: operatorOptions,
  run: async ({ operands: [text = ''], options }, { print, clock }) => {
    const shard = parseShardName(text);
    if (shard === undefined) throw new SettingsError([`${JSON.stringify(text)} is not the name of a shard`]);
    const answer = await askCache({ clock }, options, { method: 'DELETE', path: `/services/cache/shards/${encodeURIComponent(shard)}` });
    print(`Removed the shard ${shard} and ${parseRemoved(answer)} objects of it.\n`);
  },
});

export const shardsForget: Command = command({
  words: ['shards', 'forget'],
  operands: '<name>',
  help: 'Forget a shard that was removed: this cache remembers nothing of it any more',
  options: operatorOptions,
  run: async ({ operands: [text = ''], options }, { print, clock }) => {
    const shard = parseShardName(text);
    if (shard === undefined) throw new SettingsError([`${JSON.stringify(text)} is not the name of a shard`]);
    await askCache({ clock }, options, { method: 'DELETE', path: `/services/cache/shards/${encodeURIComponent(shard)}/record` });
    print(`Forgot the shard ${shard}.\n`);
  },
});

function parseRemoved(text: string): number {
  const removed = (JSON.parse(text) as { objectsRemoved?: unknown } | null)?.objectsRemoved;
  if (typeof removed === 'number') return removed;
  throw new CacheError('what was answered does not say how many objects were removed; it came from no cache');
}
