/**
 * A shard that pushes batch by batch through the real sender, and measures the time to the last
 * acknowledgement.
 *
 *   send ── source ──▶ sender ──▶ connection ──▶ server
 *     ▲                               └─ ack ─┐
 *     └────────────── resolves ───────────────┘
 *
 * Mutations are numbered from 1 in a connection. A send is done when the number of its last
 * mutation is acknowledged. There is only one connection: a reconnect would falsify the figures, so
 * it fails the running send.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { systemClock } from '../../src/clock.js';
import { createLog } from '../../src/diagnostics/log.js';
import { parseShardName, type ShardName } from '../../src/domain/shard.js';
import { connectSocket, defaultConnectOptions } from '../../src/frames/connect-socket.js';
import type { FrameConnection } from '../../src/frames/frame-connection.js';
import type { Frame, PushedObject } from '../../src/frames/frame.js';
import { connectPath } from '../../src/frames/socket-options.js';
import { defaultSenderBounds } from '../../src/sender/sender-options.js';
import { Sender } from '../../src/sender/sender.js';
import type { SliceSource, Outgoing } from '../../src/sender/source.js';
import type { PushTarget } from './jobs.js';
import { exportsType, pushedMixedObject } from './mixed-objects.js';

const { group, resource, version } = exportsType;
/** Objects in a batch, as many as in a page of a list. */
const batchObjects = 500;

type Batch = readonly Outgoing[];
type Sending = { batches: Iterable<Batch>; allSent: boolean; finish: () => void; fail: (error: Error) => void };

export class PushingShard {
  readonly #to: PushTarget;
  readonly #sender: Sender;
  readonly #stop = new AbortController();
  readonly #opened = new AbortController();
  readonly #running: Promise<void>;
  #next: (sending: Sending) => void = () => {};
  #asked: Promise<Sending> = new Promise((resolve) => (this.#next = resolve));
  #sending: Sending | undefined;
  #acknowledged = 0;
  #received = 0;
  #connections = 0;
  #failure: Error | undefined;

  private constructor(to: PushTarget, shard: ShardName) {
    this.#to = to;
    const random = Math.random;
    const log = createLog({ clock: systemClock, stream: process.stderr }, { level: 'warn', format: 'json' });
    this.#sender = new Sender(
      { turn, clock: systemClock, random, log, connect: (url, signal) => this.#connect(url, signal) },
      { ...defaultSenderBounds, shard, process: randomUUID(), takesOver: true, urls: [connectUrl(to)], agent: 'strata-bench' },
    );
    const source: SliceSource = { connected: true, open: (ended) => this.#sendAll(ended) };
    this.#sender.add({ shard, resource: { group, resource, identity: '' } }, source);
    this.#running = this.#sender.run(this.#stop.signal).then(
      (end) => this.#fail(new Error(`the sender has ended: ${JSON.stringify(end)}`)),
      (error: Error) => this.#fail(error),
    );
  }

  /** Resolves when the server has welcomed the sender. */
  static async open(to: PushTarget, shard: string): Promise<PushingShard> {
    const pushing = new PushingShard(to, parseShardName(shard)!);
    await Promise.race([once(pushing.#opened.signal, 'abort'), pushing.#running]);
    if (pushing.#failure !== undefined) throw pushing.#failure;
    return pushing;
  }

  get refused(): number {
    return this.#sender.state.refused;
  }

  /**
   * Returns the time from the first batch to the last acknowledgement. The sender takes batches at
   * its own pace.
   */
  async send(batches: Iterable<Batch>): Promise<number> {
    if (this.#failure !== undefined) throw this.#failure;
    const startedAt = performance.now();
    await new Promise<void>((finish, fail) => {
      this.#sending = { batches, allSent: false, finish, fail };
      this.#next(this.#sending);
    });
    return performance.now() - startedAt;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async *#sendAll(signal: AbortSignal): AsyncGenerator<Batch> {
    this.#opened.abort();
    const aborted = once(signal, 'abort').then(() => undefined);
    for (;;) {
      const sending = await Promise.race([this.#asked, aborted]);
      if (sending === undefined) return;
      this.#asked = new Promise((resolve) => (this.#next = resolve));
      for (const batch of sending.batches) {
        this.#received += batch.length;
        yield batch;
      }
      sending.allSent = true;
      this.#check();
    }
  }

  async #connect(url: string, signal: AbortSignal): Promise<FrameConnection> {
    this.#connections += 1;
    if (this.#connections > 1) {
      this.#fail(new Error('the connection was lost'));
      this.#stop.abort();
      throw this.#failure!;
    }
    const connection = await connectSocket(url, this.#to, { clock: systemClock, signal }, defaultConnectOptions);
    return observed(connection, (frame) => {
      if (frame.kind !== 'ack') return;
      this.#acknowledged = frame.sequence;
      this.#check();
    });
  }

  #check(): void {
    if (this.#sending?.allSent !== true || this.#acknowledged < this.#received) return;
    this.#sending.finish();
    this.#sending = undefined;
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#sending?.fail(error);
    this.#sending = undefined;
  }
}

export function connectUrl({ port }: PushTarget): string {
  return `https://127.0.0.1:${port}${connectPath}`;
}

/** Objects as a source yields them, in batches that are all made beforehand. */
export function putBatches(shard: string, objects: number, round: number): readonly Batch[] {
  return [...batchesWhenAsked(shard, objects, round)];
}

/** Like `putBatches`, but each batch is made when it is needed. */
export function* batchesWhenAsked(shard: string, objects: number, round: number, clusters?: number): Generator<Batch> {
  for (let first = 0; first < objects; first += batchObjects) {
    yield Array.from({ length: Math.min(batchObjects, objects - first) }, (_, at): Outgoing => ({
      kind: 'put',
      version,
      object: pushedObject(shard, first + at, round, clusters),
    }));
  }
}

export function* sync(puts: Iterable<Batch>): Generator<Batch> {
  yield [{ kind: 'begin', revision: '1' }];
  yield* puts;
  yield [{ kind: 'end', revision: '1' }];
}

export function pushedObject(shard: string, index: number, round: number, clusters?: number): PushedObject {
  const { cluster, name, text } = pushedMixedObject(shard, index, clusters);
  return { cluster, namespace: '', name, sourceVersion: String(round + 1), body: Buffer.from(text(round)) };
}

/** The same connection, with a callback for every frame that arrives. */
function observed(connection: FrameConnection, look: (frame: Frame) => void): FrameConnection {
  return {
    peer: connection.peer,
    closed: connection.closed,
    get bufferedBytes() {
      return connection.bufferedBytes;
    },
    send: (frame) => connection.send(frame),
    silentSinceMs: () => connection.silentSinceMs(),
    drained: () => connection.drained(),
    close: (reason, message, retryAfterMs) => connection.close(reason, message, retryAfterMs),
    terminate: () => connection.terminate(),
    async *frames() {
      for await (const frame of connection.frames()) {
        look(frame);
        yield frame;
      }
    },
  };
}
