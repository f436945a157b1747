/** `strata shards …`: lists the shards that a cache knows, or removes one with its objects. */
import { operatorOptions } from '../config/options/command-options.js';
import { SettingsError } from '../config/settings-error.js';
import { list, number, object, text } from '../domain/schema.js';
import { parseShardName, type ShardName } from '../domain/shard.js';
import { parseStatusReport } from '../domain/status.js';
import { answered, requestCache, requestStatus, countOf } from './cache-request.js';
import { command, type Command } from './command.js';
import { formatShardList } from './status-table.js';

export const shardsList: Command = command({
  words: ['shards', 'list'],
  operands: '',
  help: 'List the shards that a cache knows',
  options: operatorOptions,
  run: async ({ options }, { print, clock }) => {
    const { shards } = parseStatusReport(await requestStatus({ clock }, options));
    print(options.output === 'json' ? `${JSON.stringify(shards)}\n` : formatShardList(shards));
  },
});

export const shardsRemove: Command = command({
  words: ['shards', 'remove'],
  operands: '<name>',
  help: 'Remove a shard and its objects from a cache, and shut out its present pushers',
  options: operatorOptions,
  run: async ({ operands: [text = ''], options }, { print, clock }) => {
    const shard = shardNamed(text);
    const answer = await requestCache({ clock }, options, {
      method: 'DELETE',
      path: `/services/cache/shards/${encodeURIComponent(shard)}`,
    });
    const objects = countOf(answer, 'objectsRemoved', 'objects were removed');
    print(answered(options, answer, `Removed the shard ${shard} and ${objects} objects of it.`));
  },
});

/** Throws SettingsError. */
function shardNamed(text: string): ShardName {
  const shard = parseShardName(text);
  if (shard === undefined) throw new SettingsError([`${JSON.stringify(text)} is not the name of a shard`]);
  return shard;
}

const confirmation = object({ confirmed: list(object({ removes: number, type: text })) });

/** `strata removals …`: confirms removals that a cache holds because they are large. */
export const removalsConfirm: Command = command({
  words: ['removals', 'confirm'],
  operands: '<shard> [type]',
  help: 'Confirm the large removals that a cache holds back: of one type of a shard, or of all',
  options: operatorOptions,
  run: async ({ operands: [name = '', type], options }, { print, clock }) => {
    const shard = shardNamed(name);
    const held = `/services/cache/shards/${encodeURIComponent(shard)}/held`;
    const path = type === undefined ? held : `${held}/${encodeURIComponent(type)}`;
    const answer = await requestCache({ clock }, options, { method: 'DELETE', path });
    const sentences = confirmation(JSON.parse(answer)).confirmed.map(
      ({ removes, type: removed }) => `Confirmed: ${removes} objects of ${removed} of the shard ${shard} leave the cache.`,
    );
    print(answered(options, answer, sentences.join('\n')));
  },
});
