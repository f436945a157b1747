/**
 * Asks etcd for its newest revision, one request at a time. All who wait for the next request share
 * it.
 */
import type { Revision } from '../../domain/revision.js';
import type { EtcdClient } from './client.js';

export class NewestRevision {
  readonly #client: Pick<EtcdClient, 'revision'>;
  readonly #key: Uint8Array;
  /** The request that is under way, or was last. */
  #asked: Promise<unknown> = Promise.resolve();
  #next: Promise<Revision> | undefined;

  /** `key`: any key that this user of etcd may read. */
  constructor(client: Pick<EtcdClient, 'revision'>, key: Uint8Array) {
    this.#client = client;
    this.#key = key;
  }

  /**
   * Returns etcd's revision at some moment after the call. It does not share a request that is
   * already under way, because that may miss what happened since it was sent. Throws EtcdError.
   */
  ask(): Promise<Revision> {
    this.#next ??= this.#asked.then(() => {
      this.#next = undefined;
      const asked = this.#client.revision(this.#key);
      this.#asked = asked.catch(() => {});
      return asked;
    });
    return this.#next;
  }
}
