/** Asks etcd where it stands, one question at a time: all who wait for the next one share it. */
import type { Revision } from '../../domain/revision.js';
import type { EtcdClient } from './client.js';

export class NewestRevision {
  readonly #client: Pick<EtcdClient, 'revision'>;
  readonly #key: Uint8Array;
  /** The question that is under way, or was last. */
  #asked: Promise<unknown> = Promise.resolve();
  #next: Promise<Revision> | undefined;

  /** `key`: one that may be read. */
  constructor(client: Pick<EtcdClient, 'revision'>, key: Uint8Array) {
    this.#client = client;
    this.#key = key;
  }

  /** As it was at some moment after the call: a question that is under way may miss what has happened since it was sent. Throws EtcdError. */
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
