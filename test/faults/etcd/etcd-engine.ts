/** Opens etcd engines on one member that the tests of a file share, each on a prefix of its own. */
import { test } from '../../support/test.js';
import { systemClock } from '../../../src/clock.js';
import { openEtcd } from '../../../src/store/etcd/open-etcd.js';
import type { EtcdLimits } from '../../../src/store/etcd/store-options.js';
import type { EtcdStore } from '../../../src/store/etcd/store.js';
import type { Engine, EngineBounds } from '../../contract/store-contract.js';
import { silent, storeLimits } from '../../support/test-store.js';
import { EtcdMembers } from './etcd-members.js';
import { etcdProgram } from './etcd-program.js';

const { queue, snapshot, snapshotHoldMs, recentBytesMax } = storeLimits;

export const etcdLimits: EtcdLimits = {
  queue,
  snapshot,
  snapshotHoldMs,
  recentBytesMax,
  history: { ageMs: 3_600_000, changesMax: 1_000_000, bytesMax: 1024 ** 3 },
  resumedRevisionsMax: 100_000,
  dutiesIntervalMs: 1_000,
  keptNames: storeLimits.keptNames,
};

let members: Promise<EtcdMembers> | undefined;
let prefixes = 0;

test.after.always('end the members', async () => {
  await (await members)?.[Symbol.asyncDispose]();
});

async function theMembers(): Promise<EtcdMembers> {
  const found = await etcdProgram();
  if ('why' in found) throw new Error(found.why);
  members ??= EtcdMembers.start(found);
  return members;
}

export function openEtcdWith(limits: Partial<EtcdLimits>): (t: Teardown, bounds: EngineBounds) => Promise<Engine> {
  return async (t, bounds) => {
    const etcd = await theMembers();
    prefixes += 1;
    const prefix = `/cache${prefixes}`;
    const open = (): Promise<EtcdStore> =>
      openEtcd({ endpoints: etcd.endpoints, tls: () => etcd.tls, timeoutMs: 5_000, prefix }, limitsOf(bounds, limits), {
        log: silent,
        clock: systemClock,
        random: Math.random,
        observe: { committed: () => {}, compacted: () => {} },
      });
    const engine = {
      traits: { ordersWrites: false, keepsTombstones: false, keepsTimes: false, keepsPaths: false },
      store: await open(),
      restart: async () => {
        await engine.store.close();
        engine.store = await open();
        return engine.store;
      },
      compact: async () => engine.store.trim(),
    };
    t.teardown(() => engine.store.close());
    return engine;
  };
}

type Teardown = Readonly<{ teardown: (run: () => unknown) => void }>;

function limitsOf(
  { keptNames = etcdLimits.keptNames, changesMax, mutationsMax, pageRowsMax, pageBytesMax }: EngineBounds,
  limits: Partial<EtcdLimits>,
): EtcdLimits {
  return {
    ...etcdLimits,
    ...limits,
    keptNames,
    history: { ...etcdLimits.history, ...(changesMax === undefined ? {} : { changesMax }) },
    queue: { ...queue, ...(mutationsMax === undefined ? {} : { mutationsMax }) },
    snapshot: {
      rowsMax: pageRowsMax ?? snapshot.rowsMax,
      bytesMax: pageBytesMax ?? snapshot.bytesMax,
    },
  };
}
