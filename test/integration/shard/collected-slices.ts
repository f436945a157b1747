/**
 * A sink in memory that keeps what it receives, as a cache would. At `end` it removes objects that
 * were not synced since `begin`; at `clusterEnd` the same for one logical cluster. All sources are
 * open at the same time.
 */
import { formatSlice, type Slice } from '../../../src/domain/slice.js';
import type { SliceSink } from '../../../src/shard/declared-slices.js';
import type { SliceSource, Outgoing } from '../../../src/sender/source.js';

export type Held = Readonly<{ version: string; sourceVersion: string; text: string }>;

type Following = { readonly source: SliceSource; readonly abort: AbortController; readonly ended: Promise<void> };

export class CollectedSlices implements SliceSink {
  /**
   * Everything received, by slice, one word each: `begin`, `begin acme`, `put a`, `keep a`, `delete
   * a`, `end acme`, `end`.
   */
  readonly received = new Map<string, string[]>();
  readonly synced = new Set<string>();
  readonly withdrawn: string[] = [];
  isComplete = false;
  readonly after = new Map<string, string>();
  readonly #objects = new Map<string, Map<string, Held>>();
  readonly #following = new Map<string, Following>();

  add(slice: Slice, source: SliceSource, { after }: Readonly<{ after?: Slice }> = {}): void {
    const name = formatSlice(slice);
    if (this.#following.has(name)) throw new Error(`${name} was added already`);
    if (after !== undefined) this.after.set(name, formatSlice(after));
    const abort = new AbortController();
    this.#following.set(name, { source, abort, ended: this.#follow(name, source, abort.signal) });
  }

  withdraw(slice: Slice): void {
    const name = formatSlice(slice);
    this.withdrawn.push(name);
    this.#following.get(name)?.abort.abort();
    this.#following.delete(name);
  }

  complete(isComplete: boolean): void {
    this.isComplete = isComplete;
  }

  get slices(): readonly string[] {
    return [...this.#following.keys()];
  }

  isConnected(slice: string): boolean {
    return this.#following.get(slice)?.source.connected === true;
  }

  /** Objects by `cluster|namespace|name`. */
  objects(slice: string): Readonly<Record<string, Held>> {
    return Object.fromEntries([...(this.#objects.get(slice) ?? [])].toSorted(([left], [right]) => (left < right ? -1 : 1)));
  }

  names(slice: string): readonly string[] {
    return Object.keys(this.objects(slice)).map((place) => place.split('|')[2] ?? '');
  }

  async close(): Promise<void> {
    const all = [...this.#following.values()];
    for (const { abort } of all) abort.abort();
    await Promise.all(all.map(({ ended }) => ended));
  }

  async #follow(name: string, source: SliceSource, signal: AbortSignal): Promise<void> {
    const objects = new Map<string, Held>();
    const words: string[] = [];
    this.#objects.set(name, objects);
    this.received.set(name, words);
    let unmarked = new Set<string>();
    const unmarkedOf = new Map<string, Set<string>>();
    const kept = new Set<string>();
    for await (const batch of source.open(signal)) {
      if (batch.length === 0) throw new Error('a batch is never empty');
      for (const outgoing of batch) {
        words.push(wordOf(outgoing));
        switch (outgoing.kind) {
          case 'begin':
            unmarked = new Set(objects.keys());
            unmarkedOf.clear();
            kept.clear();
            this.synced.delete(name);
            break;
          case 'clusterBegin':
            unmarkedOf.set(outgoing.cluster, new Set([...objects.keys()].filter((place) => place.startsWith(`${outgoing.cluster}|`))));
            break;
          case 'clusterEnd':
            if (!unmarkedOf.has(outgoing.cluster)) throw new Error(`${outgoing.cluster} ended without having begun`);
            for (const place of unmarkedOf.get(outgoing.cluster) ?? []) objects.delete(place);
            unmarkedOf.delete(outgoing.cluster);
            break;
          case 'put': {
            const { cluster, namespace, name: objectName, sourceVersion, body } = outgoing.object;
            const place = `${cluster}|${namespace}|${objectName}`;
            for (const each of [unmarked, unmarkedOf.get(cluster)]) each?.delete(place);
            if (body !== undefined) objects.set(place, { version: outgoing.version, sourceVersion, text: new TextDecoder().decode(body) });
            break;
          }
          case 'delete':
            objects.delete(`${outgoing.key.cluster}|${outgoing.key.namespace}|${outgoing.key.name}`);
            break;
          case 'clusterKeep':
            if (unmarkedOf.has(outgoing.cluster)) throw new Error(`${outgoing.cluster} is under way, and to be kept`);
            kept.add(outgoing.cluster);
            break;
          case 'end':
            for (const place of unmarked) {
              const cluster = place.slice(0, place.indexOf('|'));
              if (!unmarkedOf.has(cluster) && !kept.has(cluster)) objects.delete(place);
            }
            this.synced.add(name);
            break;
        }
      }
    }
  }
}

function wordOf(outgoing: Outgoing): string {
  if (outgoing.kind === 'put') return `${outgoing.object.body === undefined ? 'keep' : 'put'} ${outgoing.object.name}`;
  if (outgoing.kind === 'clusterBegin') return `begin ${outgoing.cluster}`;
  if (outgoing.kind === 'clusterEnd') return `end ${outgoing.cluster}`;
  if (outgoing.kind === 'clusterKeep') return `keep all of ${outgoing.cluster}`;
  return outgoing.kind === 'delete' ? `delete ${outgoing.key.name}` : outgoing.kind;
}
