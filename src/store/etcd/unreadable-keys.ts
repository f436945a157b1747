/**
 * The keys whose content cannot be served, each with its revision. The first `loggedMax` are
 * logged.
 */
import type { Log } from '../../diagnostics/log.js';
import type { Key } from '../../domain/key.js';
import type { Revision } from '../../domain/revision.js';
import { isOfUpstream } from './object-keys.js';
import type { RecordKey } from './records.js';

const loggedMax = 20;

export class UnreadableKeys {
  readonly #prefix: string;
  readonly #log: Log;
  readonly #revisions = new Map<string, Revision>();

  constructor({ prefix, log }: Readonly<{ prefix: string; log: Log }>) {
    this.#prefix = prefix;
    this.#log = log;
  }

  get size(): number {
    return this.#revisions.size;
  }

  /** The revision of the key's last change; 0 if it is not one of these. */
  revisionAt(text: string): Revision {
    return this.#revisions.get(text) ?? 0;
  }

  /**
   * `key`: the parsed key, if it could be parsed. Ignores what kcp's cache server keeps for itself.
   */
  add(text: string, key: Key | RecordKey | undefined, revision: Revision): void {
    if (isOfUpstream(this.#prefix, text)) return;
    const isNew = !this.#revisions.has(text);
    this.#revisions.set(text, revision);
    if (isNew && this.#revisions.size <= loggedMax) this.#log.warn('etcd.passed-over', { key: text, why: whyNot(key) });
  }

  forget(text: string): void {
    this.#revisions.delete(text);
  }
}

function whyNot(key: Key | RecordKey | undefined): string {
  if (key === undefined) return 'it is no key of an object';
  return 'kind' in key ? 'its value is none of this engine’s' : 'its value is no object of its key';
}
