/**
 * What a cache does once it learns that its disk is older than what it has sent: a neighbour resumes from a position that this store does not know.
 *
 * The cache then lacks something, though its slices count as whole. If it sent them on, neighbours would remove what is lost here alone. So it marks
 * every slice stale, and every link and pusher connects again and syncs what it has. O5 Once in a process's life, unless the store is unavailable: this covers all that was there when
 * the process began, and a peer that lies costs no more than that.
 */
import type { Log } from '../diagnostics/log.js';
import type { PublishedState } from '../domain/published-state.js';
import type { Revisions, Writer } from '../domain/store-port.js';
import type { Push, Speaker } from '../domain/push.js';
import { isResourceVersion } from '../domain/revision.js';
import type { Neighbour } from '../domain/via.js';
import type { LinkSession } from './link-session.js';

export type RollbackParts = Readonly<{
  store: Readonly<{
    writer: Pick<Writer, 'lane'>;
    revisions: Pick<Revisions, 'published' | 'format' | 'locatePosition'>;
    state: Pick<PublishedState, 'shards' | 'slicesOf'>;
  }>;
  log: Pick<Log, 'warn'>;
  links: () => Iterable<Pick<LinkSession, 'bye'>>;
  /** Ends the sessions of those who push to this very cache; they come back at once. */
  sendPushersAway: () => void;
}>;

const retryMs = 100;

export class Rollback {
  readonly #parts: RollbackParts;
  #isNoticed = false;

  constructor(parts: RollbackParts) {
    this.#parts = parts;
  }

  /** Whether a neighbour's position shows a rollback for the first time. Then every session is ended once all is marked stale. */
  notice(neighbour: Neighbour, position: string): boolean {
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
    // Where it is not known what became of them, it is noticed again as soon as a link is back.
    this.#isNoticed = outcomes.every(({ kind }) => kind !== 'unavailable');
    for (const link of links()) link.bye('unavailable', 'the store was rolled back', retryMs);
    if (this.#isNoticed) sendPushersAway();
  }
}
