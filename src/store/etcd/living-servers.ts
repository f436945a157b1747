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
  clock: Clock;
  log: Log;
  random: () => number;
}>;

const lookIntervalMs = 300;
/** One that raises no heartbeat for so long, while etcd takes writes, does not run. */
const silentMsMax = leaseMs + 1_000;
/** As short as etcd has them. */
const probeLeaseSeconds = 2;
const never = new AbortController().signal;

/** Silence counts only while etcd takes writes: nobody can raise a heartbeat before. Throws an EtcdError where asking again would change nothing. */
export async function someServerLives({ client, published, clock, log, random }: LivingServersParts): Promise<boolean> {
  const seen = new Map(published.heartbeats);
  let isLogged = false;
  for (let silentSinceMs = clock.now(); clock.now() - silentSinceMs < silentMsMax;) {
    const present = [...published.heartbeats];
    if (present.some(([id, revision]) => seen.get(id) !== revision)) return true;
    if (present.length === 0) return false;
    await pause(clock, lookIntervalMs, never);
    try {
      // A write that leaves nothing.
      await client.grantLease({ id: randomLease(random), ttlSeconds: probeLeaseSeconds });
    } catch (error) {
      if (!(error instanceof EtcdError) || (error.kind !== 'full' && error.kind !== 'unknown')) throw error;
      silentSinceMs = clock.now();
      if (!isLogged) log.warn('etcd.start-waits', { message: error.message });
      isLogged = true;
    }
  }
  return false;
}
