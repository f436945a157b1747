/**
 * Fills one slice of a server as one pusher, as fast as the server acknowledges: a history of many
 * thousand changes within seconds.
 */
import type { Slice } from '../../src/domain/slice.js';
import type { PushedObject } from '../../src/frames/frame.js';
import { RawPusher, sliceOf, type PushTarget } from '../support/raw-pusher.js';

const frameObjectsMax = 500;
const framesUnacknowledgedMax = 3;

export class FastFiller {
  readonly #pusher: RawPusher;
  readonly #slice: Slice;
  readonly #version: string;
  #acknowledged = 0;
  #sent: number[] = [];

  private constructor(pusher: RawPusher, slice: Slice, version: string) {
    this.#pusher = pusher;
    this.#slice = slice;
    this.#version = version;
  }

  static async open(
    server: PushTarget,
    { shard = 'amber', group = 'apis.kcp.io', resource = 'apiexports', version = 'v1alpha2' } = {},
  ): Promise<FastFiller> {
    const pusher = await RawPusher.open(server, { name: shard });
    const slice = sliceOf(resource, { shard, group });
    await pusher.sync(slice, []);
    return new FastFiller(pusher, slice, version);
  }

  /** Resolves once all objects are durable. */
  async put(objects: Iterable<PushedObject>): Promise<void> {
    await this.#inFrames(objects, (frame) => this.#pusher.put(this.#slice, frame, this.#version));
  }

  async delete(names: Iterable<string>, cluster?: string): Promise<void> {
    await this.#inFrames(names, (frame) => this.#pusher.delete(this.#slice, frame, cluster));
  }

  close(): void {
    this.#pusher.socket.terminate();
  }

  async #inFrames<T>(all: Iterable<T>, send: (frame: readonly T[]) => number): Promise<void> {
    let frame: T[] = [];
    for (const one of all) {
      frame.push(one);
      if (frame.length < frameObjectsMax) continue;
      this.#sent.push(send(frame));
      frame = [];
      await this.#untilUnacknowledged(framesUnacknowledgedMax - 1);
    }
    if (frame.length > 0) this.#sent.push(send(frame));
    await this.#untilUnacknowledged(0);
  }

  async #untilUnacknowledged(framesMax: number): Promise<void> {
    for (;;) {
      this.#sent = this.#sent.filter((sequence) => sequence > this.#acknowledged);
      if (this.#sent.length <= framesMax) return;
      const frame = await this.#pusher.next();
      if (frame.kind === 'ack') this.#acknowledged = frame.sequence;
      else if (frame.kind === 'refuse' || frame.kind === 'bye') throw new Error(`${frame.kind} ${frame.reason}: ${frame.message}`);
    }
  }
}
