/**
 * Compacts etcd as Kubernetes and kcp do. In each interval, the first server to change
 * `compact_rev_key` compacts etcd up to the revision of one interval earlier. The key coordinates
 * any number of servers, of Strata and of others.
 *
 * CO1 No revision younger than `ageMs` is compacted. While more than `nearlyUsed` of etcd's quota
 *     is in use, that age is at most a minute.
 * Bound: one entry for each check within `ageMs`.
 */
import type { Log } from '../../diagnostics/log.js';
import type { Clock } from '../../domain/ports.js';
import type { Revision } from '../../domain/revision.js';
import type { StoreObserver } from '../../domain/store-port.js';
import type { EtcdClient } from './client.js';
import { EtcdError } from './etcd-error.js';

export type EtcdCompactionParts = Readonly<{
  client: Pick<EtcdClient, 'range' | 'txn' | 'compact' | 'status'>;
  clock: Clock;
  log: Log;
  observe: Pick<StoreObserver, 'compacted'>;
  /** Only the leader compacts. */
  isLeader: () => boolean;
}>;

/** Here the servers of Kubernetes and kcp record how far they have compacted. */
export const compactionKey = Buffer.from('compact_rev_key');

const checkIntervalMaxMs = 60_000;
const nearlyUsed = 0.6;
const nearAgeMs = 60_000;

export class EtcdCompaction {
  readonly #parts: EtcdCompactionParts;
  readonly #ageMs: number;
  /** etcd's revision at each check, ascending. */
  #revisions: Readonly<{ revision: Revision; atMs: number }>[] = [];
  /** The revision of the key, and when this server first saw it. */
  #changed: Readonly<{ revision: Revision; atMs: number }> | undefined;
  #cancel: () => void;

  constructor(parts: EtcdCompactionParts, { ageMs }: Readonly<{ ageMs: number }>) {
    this.#parts = parts;
    this.#ageMs = ageMs;
    this.#cancel = this.#compactLater();
  }

  close(): void {
    this.#cancel();
  }

  /** Throws EtcdError. */
  async compactIfDue(): Promise<void> {
    const { client, clock, log, observe, isLeader } = this.#parts;
    const { kvs, revision } = await client.range({ key: compactionKey });
    const nowMs = clock.now();
    const keyRevision = kvs[0]?.revision ?? 0;
    if (this.#changed?.revision !== keyRevision) this.#changed = { revision: keyRevision, atMs: nowMs };
    this.#revisions.push({ revision, atMs: nowMs });
    const ageMs = (await this.#isNearlyFull()) ? Math.min(nearAgeMs, this.#ageMs) : this.#ageMs;
    const old = this.#revisions.findLastIndex(({ atMs }) => nowMs - atMs >= ageMs);
    const upTo = this.#revisions[old]?.revision;
    if (upTo === undefined || nowMs - this.#changed.atMs < ageMs || !isLeader()) return;
    this.#revisions = this.#revisions.slice(old);
    const compare = [{ key: compactionKey, revision: keyRevision }];
    const value = Buffer.from(String(upTo));
    try {
      const put = await client.txn({ compare, success: [{ kind: 'put', key: compactionKey, value }], failure: [] });
      if (!put.succeeded) return;
      this.#changed = { revision: put.revision, atMs: nowMs };
    } catch (error) {
      // An etcd whose quota is used up rejects this put, but needs the compaction. Two servers that
      // compact up to the same revision do no harm.
      if (!(error instanceof EtcdError) || error.kind !== 'full') throw error;
    }
    const startedMs = clock.now();
    await client.compact(upTo);
    observe.compacted(upTo, clock.now() - startedMs);
    log.info('etcd.compacted', { revision: upTo });
  }

  /** etcd before 3.6 does not report its quota, so it never counts as nearly full. */
  async #isNearlyFull(): Promise<boolean> {
    const { sizeInUse, quota } = await this.#parts.client.status();
    return quota > 0 && sizeInUse > nearlyUsed * quota;
  }

  #compactLater(): () => void {
    return this.#parts.clock.after(Math.min(checkIntervalMaxMs, this.#ageMs / 2), () => {
      this.#cancel = this.#compactLater();
      this.compactIfDue().catch((error: unknown) => {
        if (!(error instanceof EtcdError)) throw error;
        // `compacted`: another server has already compacted further.
        if (error.kind !== 'compacted') this.#parts.log.warn('etcd.not-compacted', { message: error.message });
      });
    });
  }
}
