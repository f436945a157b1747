/**
 * A shard that pushes as fast as its cache gives credit. It first pushes all its objects, then
 * changes, deletes and recreates some, until the test asks it to leave a tenth. Its content derives
 * from counters.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { systemClock } from '../../src/clock.js';
import { connectSocket, defaultConnectOptions } from '../../src/frames/connect-socket.js';
import { connectPath } from '../../src/frames/socket-options.js';
import { Sender } from '../../src/sender/sender.js';
import { defaultSenderBounds } from '../../src/sender/sender-options.js';
import type { Outgoing } from '../../src/sender/source.js';
import { seeded } from '../support/crash/random.js';
import { shardName } from '../support/objects.js';
import { pushedObject, sliceOf } from '../support/raw-pusher.js';
import type { StrataProcess } from '../support/strata-process.js';
import { silent } from '../support/test-store.js';

const batch = 50;
const deletedInBatch = 5;
export const clusters = 20;

export class FloodPusher {
  readonly shard: string;
  readonly #objects: number;
  readonly #stop = new AbortController();
  readonly #ended: Promise<unknown>;
  readonly #filling: string;
  #turn = 0;
  #isLeaving = false;
  #hasLeft: () => void = () => {};
  readonly left = new Promise<void>((resolve) => (this.#hasLeft = resolve));

  constructor(server: StrataProcess, { shard, objects, bytes }: Readonly<{ shard: string; objects: number; bytes: number }>) {
    this.shard = shard;
    this.#objects = objects;
    this.#filling = 'x'.repeat(bytes);
    const { certificate, key } = server.master;
    const identity = () => ({ ca: readFileSync(server.certificateFile, 'utf8'), certificate, key });
    const clock = systemClock;
    const sender = new Sender(
      {
        turn,
        clock,
        random: Math.random,
        log: silent,
        connect: (url, signal) => connectSocket(url, identity(), { clock, signal }, defaultConnectOptions),
      },
      {
        ...defaultSenderBounds,
        backoffMaxMs: 500,
        retryAfterMaxMs: 500,
        shard: shardName(shard),
        process: randomUUID(),
        takesOver: true,
        urls: [`${server.url}${connectPath}`],
        agent: 'flood',
      },
    );
    sender.add(sliceOf('apiexports', { shard }), { connected: true, open: (signal) => this.#send(signal) });
    this.#ended = sender.run(this.#stop.signal);
  }

  /** Deletes nine of ten objects; `left` resolves when the last of these deletes has been sent. */
  leave(): void {
    this.#isLeaving = true;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  async *#send(signal: AbortSignal): AsyncGenerator<readonly Outgoing[]> {
    const random = seeded(this.#objects);
    yield [{ kind: 'begin', revision: '' }];
    yield* this.#all((index) => [this.#put(index)]);
    yield [{ kind: 'end', revision: '' }];
    while (!signal.aborted && !this.#isLeaving) {
      // Gives the event loop a turn for acknowledgements, and for readers in the same process.
      await turn();
      const some = Array.from({ length: batch }, () => random.below(this.#objects));
      yield some.map((index, at) => (at < deletedInBatch ? this.#delete(index) : this.#put(index)));
    }
    yield* this.#all((index) => (index % 10 === 0 ? [this.#put(index)] : [this.#delete(index)]));
    this.#hasLeft();
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  }

  *#all(send: (index: number) => readonly Outgoing[]): Generator<readonly Outgoing[]> {
    for (let at = 0; at < this.#objects; at += batch)
      yield Array.from({ length: Math.min(batch, this.#objects - at) }, (_, index) => send(at + index)).flat();
  }

  #put(index: number): Outgoing {
    this.#turn += 1;
    const object = {
      apiVersion: 'apis.kcp.io/v1alpha2',
      kind: 'APIExport',
      metadata: {
        name: nameOf(index),
        uid: `uid-${this.shard}-${index}`,
        labels: { turn: `${this.shard}.${this.#turn}`, colour: this.#turn % 2 ? 'red' : 'blue' },
      },
      spec: { filling: this.#filling },
    };
    return { kind: 'put', version: 'v1alpha2', object: pushedObject(object, this.#clusterOf(index)) };
  }

  #delete(index: number): Outgoing {
    return { kind: 'delete', key: { cluster: this.#clusterOf(index), namespace: '', name: nameOf(index) } };
  }

  #clusterOf(index: number): string {
    return `${this.shard}-${index % clusters}`;
  }
}

function nameOf(index: number): string {
  return `p${index}`;
}
