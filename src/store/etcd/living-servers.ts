/**
 * Whether another server of this etcd runs, which a start asks before it begins a life of the cache. A server that runs raises its heartbeat (peers.ts). Its record and
 * its lease prove nothing: a restored etcd has those of servers that are gone.
 *
 * Bound: a lease of `probeLeaseSeconds` for each look.
 */
import type { Log } from '../../diagnostics/log.js';
import { pause } from '../../domain/pause.js';
import type { Clock } from '../../domain/ports.js';
import type { EtcdClient } from './client.js';
import { EtcdError } from './etcd-error.js';
import { leaseMs, randomLease } from './peers.js';
import type { PublishedPeers } from './published-peers.js';

export type LivingServersParts = Readonly<{
  client: Pick<EtcdClient, 'grantLease'>;
  published: PublishedPeers;
  /** Resolves once everything is published that had happened when it was called. Throws a CacheError, an EtcdError where asking again may help. */
  reachNewest: () => Promise<void>;
  clock: Clock;
  log: Log;
  random: () => number;
}>;

const lookIntervalMs = 300;
/** A server that raises no heartbeat in so many looks does not run. Looks are counted, because time in which this process was paused (F7) or read nothing says nothing about others. */
const silentLooksMax = Math.ceil((leaseMs + 1_000) / lookIntervalMs);
/** As short as etcd has them. */
const probeLeaseSeconds = 2;
const never = new AbortController().signal;

/** Silence counts only while etcd takes writes: nobody can raise a heartbeat before. Throws a CacheError where asking again would change nothing. */
export async function someServerLives({ client, published, reachNewest, clock, log, random }: LivingServersParts): Promise<boolean> {
  const seen = new Map(published.heartbeats);
  let isLogged = false;
  for (let silentLooks = 0; published.heartbeats.size > 0 && silentLooks < silentLooksMax;) {
    await pause(clock, lookIntervalMs, never);
    try {
      // A write that leaves nothing.
      await client.grantLease({ id: randomLease(random), ttlSeconds: probeLeaseSeconds });
      await reachNewest();
      silentLooks += 1;
    } catch (error) {
      if (!(error instanceof EtcdError) || (error.kind !== 'full' && error.kind !== 'unknown')) throw error;
      silentLooks = 0;
      if (!isLogged) log.warn('etcd.start-waits', { message: error.message });
      isLogged = true;
    }
    if ([...published.heartbeats].some(([id, revision]) => seen.get(id) !== revision)) return true;
  }
  return false;
}
