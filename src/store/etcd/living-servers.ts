/**
 * Finds out whether another server of this etcd runs. If none runs, the start begins a new epoch of
 * the cache. A running server keeps writing its heartbeat (peers.ts). Records and leases prove
 * nothing, because a restored etcd has those of former servers.
 *
 * Bound: a lease of `probeLeaseSeconds` for each check.
 */
import type { Log } from '../../diagnostics/log.js';
import { pause } from '../../domain/base/promises.js';
import type { Clock } from '../../domain/ports.js';
import type { EtcdClient } from './client.js';
import { EtcdError } from './etcd-error.js';
import { leaseMs, randomLease } from './peers.js';
import type { PublishedPeers } from './published-peers.js';

export type LivingServersParts = Readonly<{
  client: Pick<EtcdClient, 'grantLease'>;
  published: PublishedPeers;
  /**
   * Resolves once everything that etcd held at the call is published here. Throws a CacheError; an
   * EtcdError if a retry may help.
   */
  reachNewest: () => Promise<void>;
  clock: Clock;
  log: Log;
  random: () => number;
}>;

const checkIntervalMs = 300;
/**
 * A server whose heartbeat stays the same for this many checks does not run. Checks are counted
 * instead of time, because a pause of this process (docs/guarantees.md, F7) says nothing about
 * other servers.
 */
const silentChecksMax = Math.ceil((leaseMs + 1_000) / checkIntervalMs);
/** The shortest lease that etcd grants. */
const probeLeaseSeconds = 2;

/**
 * A check counts only while etcd accepts writes, because otherwise no server can write a heartbeat.
 * Throws a CacheError if a retry would not help.
 */
export async function someServerLives({ client, published, reachNewest, clock, log, random }: LivingServersParts): Promise<boolean> {
  const seen = new Map(published.heartbeats);
  let isLogged = false;
  for (let silentLooks = 0; published.heartbeats.size > 0 && silentLooks < silentChecksMax;) {
    await pause(clock, checkIntervalMs);
    try {
      // Proves that etcd accepts writes, and leaves no key behind.
      await client.grantLease({ id: randomLease(random), ttlSeconds: probeLeaseSeconds });
      await reachNewest();
      silentLooks += 1;
    } catch (error) {
      if (!(error instanceof EtcdError) || (error.kind !== 'full' && error.kind !== 'unknown')) throw error;
      silentLooks = 0;
      if (!isLogged) log.warn('etcd.start-delayed', { message: error.message });
      isLogged = true;
    }
    if ([...published.heartbeats].some(([id, revision]) => seen.get(id) !== revision)) return true;
  }
  return false;
}
