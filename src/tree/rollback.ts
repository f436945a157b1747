/**
 * Repairs a cache whose disk lacks changes that the cache has already sent. The cache learns of
 * this when a neighbour resumes from a position that this store does not know.
 *
 * Such a cache lacks objects although its slices count as whole. If it sent these slices on, its
 * neighbours would remove objects that only this cache has lost. So it marks every slice stale and
 * ends every session. Every link and pusher then connects again and syncs what it has.
 *
 * O5 The repair runs once in the life of a process, and again only if the store was unavailable.
 *    Once is enough, because it covers everything that was here when the process started. A peer
 *    that sends a false position causes one repair.
 */
import type { Log } from '../diagnostics/log.js';
import type { PublishedState } from '../domain/published-state.js';
import type { Revisions, Writer } from '../domain/store-port.js';
import type { Push, Speaker } from '../domain/push.js';
import { isResourceVersion } from '../domain/revision.js';
import type { Neighbour } from '../domain/via.js';
import type { LinkSession } from './links/link-session.js';

export type RollbackParts = Readonly<{
  store: Readonly<{
    writer: Pick<Writer, 'lane'>;
    revisions: Pick<Revisions, 'published' | 'format' | 'locatePosition'>;
    state: Pick<PublishedState, 'shards' | 'slicesOf'>;
  }>;
  log: Pick<Log, 'warn'>;
  links: () => Iterable<Pick<LinkSession, 'bye'>>;
  /** Ends the sessions of this cache's own pushers. They connect again at once. */
  sendPushersAway: () => void;
}>;

const retryMs = 100;

export class Rollback {
  readonly #parts: RollbackParts;
  #isNoticed = false;

  constructor(parts: RollbackParts) {
    this.#parts = parts;
  }

  /**
   * Whether a neighbour's position shows a rollback for the first time. If so, all sessions end
   * once every slice is marked stale.
   */
  detect(neighbour: Neighbour, position: string): boolean {
    const { revisions } = this.#parts.store;
    if (this.#isNoticed || !isResourceVersion(position) || revisions.locatePosition(position).kind === 'ours') return false;
    this.#isNoticed = true;
    this.#parts.log.warn('store.rolled-back', { neighbour, position, resourceVersion: revisions.format(revisions.published) });
    void this.#invalidateAll();
    return true;
  }

  async #invalidateAll(): Promise<void> {
    const { store, links, sendPushersAway } = this.#parts;
    const { state, writer } = store;
    const invalidations = [...state.shards].flatMap(({ shard, via, term }): readonly Push[] => {
      if (via === undefined) return [];
      const by: Speaker = via === 'local' ? { kind: 'pusher', term } : { kind: 'link', neighbour: via };
      return [...state.slicesOf(shard)].map(({ slice }) => ({ kind: 'invalidate', slice, by }));
    });
    const outcomes = await writer.lane().push(invalidations);
    // If the store was unavailable, the slices may not be marked. The next link that opens then
    // shows the rollback again.
    this.#isNoticed = outcomes.every(({ kind }) => kind !== 'unavailable');
    for (const link of links()) link.bye('unavailable', 'the store was rolled back', retryMs);
    if (this.#isNoticed) sendPushersAway();
  }
}
