/**
 * The slice of a simulated shard, as a source for a sender: first all objects, then their changes.
 * Changes of one key that are not read yet count as one.
 */
import type { Key } from '../../src/domain/key.js';
import { Notifier } from '../../src/sender/notifier.js';
import type { Outgoing, SliceSource } from '../../src/sender/source.js';
import { textOfKey, type ModelObject } from './model-rule.js';

export class SimSource implements SliceSource {
  readonly connected = true;
  /** By the text of the key. */
  readonly #objects = new Map<string, ModelObject>();
  readonly #versions = new Map<string, number>();
  readonly #changed = new Map<string, Key>();
  readonly #notifier = new Notifier();
  readonly #sent: () => void;
  #version = 0;

  /** `sent` is called when everything that was read has been sent. */
  constructor(sent: () => void) {
    this.#sent = sent;
  }

  get isRead(): boolean {
    return this.#changed.size === 0;
  }

  set(key: Key, object: ModelObject | undefined): void {
    const name = textOfKey(key);
    this.#version += 1;
    this.#versions.set(name, this.#version);
    if (object === undefined) this.#objects.delete(name);
    else this.#objects.set(name, object);
    this.#changed.set(name, key);
    this.#notifier.notify();
  }

  async *open(signal: AbortSignal): AsyncGenerator<readonly Outgoing[], void, undefined> {
    const revision = String(this.#version);
    this.#changed.clear();
    yield [{ kind: 'begin', revision }, ...[...this.#objects.values()].map(({ key }) => this.#outgoing(key)), { kind: 'end', revision }];
    while (!signal.aborted) {
      this.#sent();
      const seen = this.#notifier.notified;
      const changed = [...this.#changed.values()];
      this.#changed.clear();
      if (changed.length > 0) yield changed.map((key) => this.#outgoing(key));
      else await this.#notifier.after(seen, signal);
    }
  }

  #outgoing(key: Key): Outgoing {
    const { cluster, namespace, name } = key;
    const object = this.#objects.get(textOfKey(key));
    if (object === undefined) return { kind: 'delete', key: { cluster, namespace, name } };
    const { version, bytes } = object.body;
    const sourceVersion = String(this.#versions.get(textOfKey(key)) ?? 0);
    return { kind: 'put', version, object: { cluster, namespace, name, sourceVersion, body: bytes } };
  }
}
