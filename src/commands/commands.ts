/** Every command but those that run a server, in the order in which help lists them. */
import { certAdmin, certCache, certServing, certShard } from './cert.js';
import type { Command } from './command.js';
import { push } from './push.js';
import { shardsList, shardsRemove } from './shards.js';
import { status } from './status.js';
import { backup, check, restore } from './store-files.js';

export const commands: readonly Command[] = [
  push,
  status,
  backup,
  restore,
  check,
  shardsList,
  shardsRemove,
  certShard,
  certCache,
  certAdmin,
  certServing,
];

/** What commands have in common that begin with the same word. */
export const commandGroups: Readonly<Record<string, string>> = {
  shards: 'List and remove the shards of a cache',
  cert: 'Issue certificates from an authority of your own',
};
