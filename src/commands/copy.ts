/**
 * `strata copy`: copies a store from one engine to the other while no server runs on either store.
 */
import { copyOptions, type StoreName } from '../config/options/command-options.js';
import type { CommandValues } from '../config/command-line/command-values.js';
import { formatBytes } from '../config/options/quantity.js';
import { loadSettings } from '../config/settings.js';
import { SettingsError } from '../config/settings-error.js';
import { CacheError } from '../domain/errors.js';
import type { Store } from '../domain/store-port.js';
import { readRegularFile } from '../regular-file.js';
import { DamagedStore } from '../store/damaged-store.js';
import { createLog } from '../diagnostics/log.js';
import { command, type Command, type Surroundings } from './command.js';

type CopyValues = CommandValues<typeof copyOptions>;

const progressIntervalMs = 1_000;

export const copy: Command = command({
  words: ['copy'],
  operands: '',
  help: 'Copy a store from SQLite to etcd, or back, while no server runs on it',
  options: copyOptions,
  run: async ({ options }, surroundings) => {
    const { from, to } = options;
    if (from.engine === to.engine)
      throw new SettingsError([
        `--from and --to are both ${from.engine}: strata copy copies only from one engine to the other; use a backup instead`,
      ]);
    const { copyStore } = await import('../store/copy-store.js');
    const { print, clock } = surroundings;
    const beganMs = clock.now();
    const source = await opened(from, options, surroundings);
    try {
      const target = await opened(to, options, surroundings);
      try {
        let noted = clock.now();
        const copied = await copyStore(source, target, (objects) => {
          if (clock.now() - noted < progressIntervalMs) return;
          noted = clock.now();
          print(`${objects} objects\n`);
        });
        const { objects, bytes, shards, left } = copied;
        print(
          `Copied ${objects} objects of ${shards} shards, ${formatBytes(bytes)}, in ${((clock.now() - beganMs) / 1_000).toFixed(1)} s; their digests are the same.\n`,
        );
        if (left > 0) print(`Not copied: ${left} objects from links or of removed shards.\n`);
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
  },
});

/** Opens the store as a server does, with the default bounds of a server. */
async function opened({ engine, place }: StoreName, options: CopyValues, { clock, random, logStream }: Surroundings): Promise<Store> {
  const flags =
    engine === 'sqlite'
      ? { 'data-directory': place }
      : {
          'etcd-servers': place,
          'etcd-prefix': options.etcdPrefix,
          'etcd-cafile': options.etcdCaFile,
          'etcd-certfile': options.etcdCertFile,
          'etcd-keyfile': options.etcdKeyFile,
          'etcd-timeout': `${options.etcdTimeoutMs}ms`,
        };
  const { openStore } = await import('../server/open-store.js');
  const settings = loadSettings({ flags, environment: {}, readFile: readRegularFile });
  const log = createLog({ clock, stream: logStream }, { level: 'error', format: 'pretty' });
  const store = await openStore(settings, { log, clock, random, observe: { committed: () => {}, compacted: () => {} } });
  if (store instanceof DamagedStore) throw new CacheError(`the store in ${place} is damaged: strata check says how`);
  if (store.peers.others.size === 0) return store;
  await store.close();
  throw new CacheError(`servers run on ${place}: stop them first`);
}
