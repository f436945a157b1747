/**
 * Records what crosses each link and finds needless repeats. Within one connection, an unchanged
 * object crosses at most once each way. It may cross again if its slice is resynced in between, or
 * if the object left the link and came back. An echo is an object that goes back over the link it
 * came by; where shards move, echoes are right.
 *
 * Frames after a gap in the sequence numbers were tampered with, and are not checked.
 */
import type { Frame } from '../../src/frames/frame.js';
import { formatSlice, type Slice } from '../../src/domain/slice.js';
import type { Delivery } from './network-link.js';
import type { Network } from './network.js';

const foundMax = 100;

type Way = { next: number; isTampered: boolean; readonly slices: Map<string, Map<string, string>> };

export class Crossings {
  /**
   * By connection and direction: the last version of each key sent since the last `begin` of its
   * slice.
   */
  readonly #ways = new Map<string, Way>();
  /** By link: each content that has crossed it, and the end that sent it first. */
  readonly #from = new Map<string, Map<string, string>>();
  readonly #repeats: string[] = [];
  readonly #echoes: string[] = [];
  readonly #remembers: boolean;
  #objects = 0;

  /** `remembers`: keeps everything that has crossed each link, to find echoes. */
  constructor(network: Network, { remembers = true }: Readonly<{ remembers?: boolean }> = {}) {
    this.#remembers = remembers;
    network.observe((delivery) => this.#see(delivery));
  }

  /** Objects that have crossed a link, repeats included. */
  get objects(): number {
    return this.#objects;
  }

  /** Descriptions of objects that were sent twice. */
  get repeats(): readonly string[] {
    return this.#repeats;
  }

  get echoes(): readonly string[] {
    return this.#echoes;
  }

  #see(delivery: Delivery): void {
    const { frame } = delivery;
    if (!('sequence' in frame) || frame.kind === 'ack' || frame.kind === 'refuse') return;
    const way = this.#way(delivery);
    way.isTampered ||= frame.sequence !== way.next;
    way.next = frame.sequence + mutationsOf(frame);
    if (way.isTampered) return;
    if (frame.kind === 'begin') way.slices.delete(formatSlice(frame.slice));
    if (frame.kind === 'delete') for (const key of frame.keys) received(way, frame.slice).delete(placeOf(key));
    if (frame.kind === 'put') this.#seePut({ ...delivery, frame }, way);
  }

  #seePut({ from, to, frame, atMs }: Delivery & { frame: Extract<Frame, { kind: 'put' }> }, way: Way): void {
    const before = received(way, frame.slice);
    const slice = formatSlice(frame.slice);
    const filterHash = [from, to].toSorted().join(' ');
    const crossed = this.#from.get(filterHash) ?? new Map<string, string>();
    this.#from.set(filterHash, crossed);
    for (const object of frame.objects) {
      this.#objects += 1;
      const what = `after ${atMs} ms, from ${from} to ${to}: ${slice} ${placeOf(object)} at ${object.sourceVersion}`;
      if (before.get(placeOf(object)) === object.sourceVersion && this.#repeats.length < foundMax) this.#repeats.push(`${what}, again`);
      before.set(placeOf(object), object.sourceVersion);
      if (!this.#remembers) continue;
      const content = `${slice} ${placeOf(object)} ${object.body === undefined ? '' : Buffer.from(object.body).toString('base64')}`;
      const origin = crossed.get(content) ?? from;
      crossed.set(content, origin);
      if (origin !== from && this.#echoes.length < foundMax) this.#echoes.push(`${what}, back where it came from`);
    }
  }

  #way({ connection, from }: Delivery): Way {
    const text = `${connection} ${from}`;
    const way = this.#ways.get(text) ?? { next: 1, isTampered: false, slices: new Map() };
    this.#ways.set(text, way);
    return way;
  }
}

function received({ slices }: Way, slice: Slice): Map<string, string> {
  const known = slices.get(formatSlice(slice)) ?? new Map<string, string>();
  slices.set(formatSlice(slice), known);
  return known;
}

function mutationsOf(frame: Frame): number {
  if (frame.kind === 'put') return frame.objects.length;
  return frame.kind === 'delete' ? frame.keys.length : 1;
}

function placeOf({ cluster, namespace, name }: Readonly<{ cluster: string; namespace: string; name: string }>): string {
  return `${cluster}|${namespace}/${name}`;
}
