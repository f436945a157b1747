/**
 * Watches what crosses each edge, and finds what crosses more often than it must: within one connection a change is told once each
 * way, unless its slice is stated anew in between.
 */
import type { Frame } from '../../src/frames/frame.js';
import { formatSlice, type Slice } from '../../src/domain/slice.js';
import type { Delivery } from './network-link.js';
import type { Network } from './network.js';

const repeatsMax = 100;

export class Crossings {
  /** By connection, direction and slice: the changes told since its last `begin`. */
  readonly #told = new Map<string, Set<string>>();
  readonly #repeats: string[] = [];
  #objects = 0;

  constructor(network: Network) {
    network.observe((delivery) => this.#see(delivery));
  }

  /** How many objects have crossed an edge, each time counted. */
  get objects(): number {
    return this.#objects;
  }

  /** What was told twice, in words. */
  get repeats(): readonly string[] {
    return this.#repeats;
  }

  #see({ from, to, connection, frame, atMs }: Delivery): void {
    if (frame.kind === 'begin') this.#told.delete(wayOf(connection, from, frame.slice));
    if (frame.kind !== 'put') return;
    const way = wayOf(connection, from, frame.slice);
    const told = this.#told.get(way) ?? new Set<string>();
    this.#told.set(way, told);
    for (const change of changesOf(frame)) {
      this.#objects += 1;
      if (told.has(change) && this.#repeats.length < repeatsMax)
        this.#repeats.push(`after ${atMs} ms, from ${from} to ${to}: ${formatSlice(frame.slice)} ${change}`);
      told.add(change);
    }
  }
}

function wayOf(connection: number, from: string, slice: Slice): string {
  return `${connection} ${from} ${formatSlice(slice)}`;
}

function changesOf({ objects }: Frame & { kind: 'put' }): readonly string[] {
  return objects.map(({ cluster, namespace, name, sourceVersion }) => `${cluster}|${namespace}/${name} at ${sourceVersion}`);
}
