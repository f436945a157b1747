/** Stores of several servers on one prefix of one etcd, in this process. */
import type { ExecutionContext } from 'ava';
import { systemClock } from '../../../src/clock.js';
import { openEtcd } from '../../../src/store/etcd/open-etcd.js';
import type { EtcdLimits } from '../../../src/store/etcd/store-options.js';
import type { EtcdStore } from '../../../src/store/etcd/store.js';
import { silent } from '../../support/test-store.js';
import { etcdLimits } from './etcd-engine.js';
import type { EtcdMembers } from './etcd-members.js';

export const prefix = '/cache';

/**
 * Opens a store that closes with the test. `timeoutMs`: for each call to etcd;
 * `resumedRevisionsMax`: how many revisions of history it reads.
 */
export async function opened(
  t: ExecutionContext,
  etcd: EtcdMembers,
  {
    endpoints = etcd.endpoints,
    timeoutMs = 5_000,
    ...limits
  }: Readonly<
    { endpoints?: readonly string[]; timeoutMs?: number } & Partial<Pick<EtcdLimits, 'recentBytesMax' | 'resumedRevisionsMax'>>
  > = {},
): Promise<EtcdStore> {
  const store = await openEtcd(
    { endpoints, tls: () => etcd.tls, timeoutMs, prefix },
    { ...etcdLimits, ...limits },
    {
      log: silent,
      clock: systemClock,
      random: Math.random,
      observe: { committed: () => {}, compacted: () => {} },
    },
  );
  t.teardown(() => store.close());
  return store;
}
