/** Every command but those that run a server, in the order of the help. */
import { cachesForget, cachesList } from './caches.js';
import { certAdmin, certCache, certReader, certServing, certShard, certSyncer } from './cert.js';
import type { Command } from './command.js';
import { consoleLink } from './console.js';
import { copy } from './copy.js';
import { identities } from './identities.js';
import { kubeconfig } from './kubeconfig.js';
import { push } from './push.js';
import { resolve } from './resolve.js';
import { removalsConfirm, shardsList, shardsRemove } from './shards.js';
import { status } from './status.js';
import { backup, check, restore } from './store-files.js';

export const commands: readonly Command[] = [
  push,
  status,
  resolve,
  identities,
  consoleLink,
  kubeconfig,
  backup,
  restore,
  check,
  copy,
  shardsList,
  shardsRemove,
  cachesList,
  cachesForget,
  removalsConfirm,
  certShard,
  certCache,
  certReader,
  certSyncer,
  certAdmin,
  certServing,
];

export const commandGroups: Readonly<Record<string, string>> = {
  shards: 'List and remove the shards of a cache',
  caches: 'List and forget the caches that a cache knows',
  removals: 'Confirm removals that a cache holds',
  cert: 'Issue certificates from an authority of your own',
};
