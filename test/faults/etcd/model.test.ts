/** Compares two servers of one etcd with their model; each request goes to the next server. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compareWithModel } from '../machines/compared-with-model.js';
import type { ModelledStore } from '../machines/modelled-server.js';
import { BalancedServers } from './balanced-servers.js';
import type { EtcdMembers } from './etcd-members.js';
import { members } from './with-members.js';

compareWithModel({
  what: 'two servers of one etcd',
  runs: 2,
  // Enough history for the changes that the model expects, and little more.
  flags: ['--etcd-history-bytes-max=4MiB', '--etcd-bodies-bytes-max=1MiB'],
  open: async (t, { flags, environment }) => {
    const etcd = await members(t);
    if (etcd === undefined) return undefined;
    const folder = await mkdtemp(join(tmpdir(), 'snapshots-'));
    const servers = await BalancedServers.start(etcd, { flags, environment });
    return {
      servers: servers.servers,
      store: snapshotsOf(etcd, folder),
      [Symbol.asyncDispose]: async () => {
        await servers[Symbol.asyncDispose]();
        await etcd[Symbol.asyncDispose]();
        await rm(folder, { recursive: true });
      },
    };
  },
});

function snapshotsOf(etcd: EtcdMembers, folder: string): ModelledStore {
  let snapshots = 0;
  return {
    copy: async () => {
      snapshots += 1;
      const file = join(folder, `snapshot-${snapshots}`);
      await etcd.save(file);
      return file;
    },
    putBack: (file) => etcd.restore(file),
    forgets: true,
  };
}
