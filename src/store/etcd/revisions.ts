/** The published revision, and how far history goes back. Revisions are etcd's. */
import { Refused } from '../../domain/errors.js';
import type { Located, Revision } from '../../domain/revision.js';
import type { Revisions } from '../../domain/store-port.js';
import { countDigits, formatInEpoch } from '../epochs.js';
import { EtcdError } from './etcd-error.js';
import type { Follower } from './follower.js';
import type { HistoryWindow } from './history-window.js';
import type { PublishedState } from './published-state.js';

export type EtcdRevisionsParts = Readonly<{
  epoch: number;
  published: Pick<PublishedState, 'revision'>;
  window: Pick<HistoryWindow, 'compacted'>;
  follower: Pick<Follower, 'reachNewest'>;
}>;

export class EtcdRevisions implements Revisions {
  readonly #parts: EtcdRevisionsParts;

  constructor(parts: EtcdRevisionsParts) {
    this.#parts = parts;
  }

  get published(): Revision {
    return this.#parts.published.revision;
  }

  get compacted(): Revision {
    return this.#parts.window.compacted;
  }

  format(revision: Revision): string {
    return String(revision);
  }

  locate(text: string): Located {
    const revision = Number(text);
    return revision <= this.published ? { kind: 'ours', revision } : { kind: 'above' };
  }

  formatPosition(revision: Revision): string {
    return formatInEpoch(this.#parts.epoch, revision);
  }

  locatePosition(text: string): Located {
    const count = text.slice(-countDigits);
    return this.formatPosition(Number(count)) === text ? this.locate(count) : { kind: 'below' };
  }

  async reachNewest(): Promise<void> {
    try {
      await this.#parts.follower.reachNewest();
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      throw new Refused({
        reason: 'ServiceUnavailable',
        message: 'etcd did not report its newest revision',
        details: { retryAfterSeconds: 1 },
      });
    }
  }
}
