/**
 * What a shard holds now and held before: the truth that caches are compared with. A pusher reads
 * its shard without delay, so the pusher's objects are what the shard holds.
 */
import { isDeclaring } from '../../src/domain/catalogue/declaration.js';
import type { Key } from '../../src/domain/key.js';
import type { Clock } from '../../src/domain/ports.js';
import { formatSlice } from '../../src/domain/slice.js';
import { metadataOf, pathAnnotation, textOfKey, type ModelObject } from './model-rule.js';

/** Undefined: the shard holds nothing under the key. */
type Value = ModelObject | undefined;
type Since = Readonly<{ sinceMs: number; value: Value }>;
type Past = Readonly<{ key: Key; values: Since[] }>;

const alwaysMs = -Infinity;

export class ShardTruth {
  /** By the text of the key, in the order of time. */
  readonly #past = new Map<string, Past>();
  readonly #slices = new Map<string, Map<string, Key>>();
  /** By logical cluster: keys of objects that ever named its path. */
  readonly #paths = new Map<string, Map<string, Key>>();
  readonly #declaring = new Map<string, Key>();
  #time: Pick<Clock, 'now'> | undefined;
  #sinceMs = 0;
  #version = 0;

  /** Starts the record: the present content counts as always held. */
  begin(time: Pick<Clock, 'now'>): void {
    this.#time = time;
    this.#sinceMs = time.now();
  }

  /** The time of `begin`; the record says nothing of earlier times. */
  get sinceMs(): number {
    return this.#sinceMs;
  }

  /** Changes whenever the content does. */
  get version(): number {
    return this.#version;
  }

  get objects(): readonly ModelObject[] {
    return [...this.#past.values()].flatMap(({ values }) => values.at(-1)?.value ?? []);
  }

  get declaringKeys(): readonly Key[] {
    return [...this.#declaring.values()];
  }

  set(key: Key, value: Value): void {
    const text = textOfKey(key);
    const past = this.#past.get(text) ?? { key, values: [] };
    this.#past.set(text, past);
    past.values.push({ sinceMs: this.#time?.now() ?? alwaysMs, value });
    keysIn(this.#slices, formatSlice(key)).set(text, key);
    if (isDeclaring(key.resource)) this.#declaring.set(text, key);
    if (value !== undefined && metadataOf(value.body).annotations[pathAnnotation] !== undefined)
      keysIn(this.#paths, key.cluster).set(text, key);
    this.#version += 1;
  }

  get slices(): Iterable<string> {
    return this.#slices.keys();
  }

  /** The keys, by their text, under which a slice ever held something. */
  keysOf(slice: string): ReadonlyMap<string, Key> {
    return this.#slices.get(slice) ?? new Map();
  }

  pathKeysOf(cluster: string): Iterable<Key> {
    return this.#paths.get(cluster)?.values() ?? [];
  }

  /** All values of the key from that moment up to now; at least one. */
  heldSince(key: Key, fromMs: number): readonly Value[] {
    const values = this.#past.get(textOfKey(key))?.values ?? [];
    const first = values.findLastIndex(({ sinceMs }) => sinceMs <= fromMs);
    return [values[first]?.value, ...values.slice(first + 1).map(({ value }) => value)];
  }
}

function keysIn(map: Map<string, Map<string, Key>>, name: string): Map<string, Key> {
  const keys = map.get(name) ?? new Map<string, Key>();
  map.set(name, keys);
  return keys;
}
