/**
 * Asks etcd for its newest revision. One request is under way at a time; all who wait for the next
 * one share it.
 */
import type { Revision } from '../../domain/revision.js';
import type { EtcdClient } from './client.js';

export class NewestRevision {
  readonly #client: Pick<EtcdClient, 'revision'>;
  readonly #key: Uint8Array;
  /** The current request, or the last one. */
  #asked: Promise<unknown> = Promise.resolve();
  #next: Promise<Revision> | undefined;

  /** `key`: any key that this user of etcd may read. */
  constructor(client: Pick<EtcdClient, 'revision'>, key: Uint8Array) {
    this.#client = client;
    this.#key = key;
  }

  /**
   * Returns etcd's revision at some moment after the call. A request that is already under way may
   * miss what happened since it was sent, so it is not shared. Throws EtcdError.
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
