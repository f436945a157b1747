/** `strata removals …`: confirms removals that a cache holds because they are large. */
import { operatorOptions } from '../config/command-options.js';
import { listOf, numberOf, recordOf, textOf } from './members.js';
import { answered, askCache } from './ask-cache.js';
import { command, type Command } from './command.js';
import { shardNamed } from './shards.js';

export const removalsConfirm: Command = command({
  words: ['removals', 'confirm'],
  operands: '<shard> [type]',
  help: 'Confirm the large removals that a cache holds back: of one type of a shard, or of all',
  options: operatorOptions,
  run: async ({ operands: [text = '', type], options }, { print, clock }) => {
    const shard = shardNamed(text);
    const held = `/services/cache/shards/${encodeURIComponent(shard)}/held`;
    const path = type === undefined ? held : `${held}/${encodeURIComponent(type)}`;
    const answer = await askCache({ clock }, options, { method: 'DELETE', path });
    const confirmed = listOf(recordOf(JSON.parse(answer))['confirmed']).map(recordOf);
    const sentences = confirmed.map(
      (one) => `Confirmed: ${numberOf(one['removes'])} objects of ${textOf(one['type'])} of the shard ${shard} leave the cache.`,
    );
    print(answered(options, answer, sentences.join('\n')));
  },
});
