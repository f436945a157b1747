/**
 * A shard of the fault tests. It knows what it holds, which is the truth for its test. Its senders
 * push that into caches, each as a new process of the shard: first a full sync, then the changes.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { systemClock } from '../../../src/clock.js';
import type { Log } from '../../../src/diagnostics/log.js';
import type { Slice } from '../../../src/domain/slice.js';
import { connectSocket, defaultConnectOptions } from '../../../src/frames/connect-socket.js';
import type { PushedObject } from '../../../src/frames/frame.js';
import { connectPath } from '../../../src/frames/socket-options.js';
import { Sender } from '../../../src/sender/sender.js';
import { defaultSenderBounds } from '../../../src/sender/sender-options.js';
import type { SenderEnd } from '../../../src/sender/sender-state.js';
import type { SliceSource, Outgoing } from '../../../src/sender/source.js';
import { shardName } from '../../support/objects.js';
import { pushedObject } from '../../support/raw-pusher.js';
import type { TreeCache } from '../../support/crash/process-tree.js';

export const modelTypes = [
  { group: 'apis.kcp.io', resource: 'apiexports', version: 'v1alpha2', kind: 'APIExport' },
  { group: 'tenancy.kcp.io', resource: 'workspacetypes', version: 'v1alpha1', kind: 'WorkspaceType' },
] as const;

export type ModelType = (typeof modelTypes)[number];

export type ModelObject = Readonly<{ type: ModelType; name: string; turn: number; isPublic: boolean; bytes: number }>;

export type Pushing = Readonly<{ sender: Sender; ended: Promise<SenderEnd>; stop: () => Promise<void> }>;

const quiet: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => quiet };
const batch = 200;

/** A shard whose senders stop when the test ends. */
export function aModelShard(t: ExecutionContext, name: string): ModelShard {
  const shard = new ModelShard(name);
  t.teardown(() => shard.close());
  return shard;
}

export class ModelShard {
  readonly name: string;
  readonly #objects = new Map<string, ModelObject>();
  readonly #feeds = new Set<(type: ModelType, outgoing: Outgoing) => void>();
  readonly #pushings = new Set<Pushing>();
  /** How often a sender opened a slice to sync it. */
  syncs = 0;

  constructor(name: string) {
    this.name = name;
  }

  get objects(): readonly ModelObject[] {
    return [...this.#objects.values()];
  }

  /** The APIExports as `name turn`, sorted. */
  get truth(): readonly string[] {
    return this.objects
      .filter(({ type }) => type === modelTypes[0])
      .map(({ name, turn }) => `${name} ${turn}`)
      .toSorted();
  }

  find(type: ModelType, name: string): ModelObject | undefined {
    return this.#objects.get(keyOf(type, name));
  }

  put(name: string, { type = modelTypes[0], turn = 0, isPublic = true, bytes = 100 }: Partial<ModelObject> = {}): void {
    const object = { type, name, turn, isPublic, bytes };
    this.#objects.set(keyOf(type, name), object);
    for (const send of this.#feeds) send(type, { kind: 'put', version: type.version, object: written(object) });
  }

  delete(name: string, type: ModelType = modelTypes[0]): void {
    if (this.#objects.delete(keyOf(type, name)))
      for (const send of this.#feeds) send(type, { kind: 'delete', key: { cluster: 'acme', namespace: '', name } });
  }

  /**
   * Starts a process of this shard in a later turn than all before. It pushes into the cache until
   * it is stopped or fenced. `port` and `caFile` belong to another address that leads to the cache.
   */
  push(
    { process }: Pick<TreeCache, 'process'>,
    { port = process.port, caFile = process.certificateFile }: Readonly<{ port?: number; caFile?: string }> = {},
  ): Pushing {
    const { certificate, key } = process.master;
    // Read at each connect, because a cache that lost its disk shows another certificate.
    const identity = () => ({ ca: readFileSync(caFile, 'utf8'), certificate, key });
    const clock = systemClock;
    const options = { ...defaultConnectOptions, pingIntervalMs: 1_000, pongTimeoutMs: 1_000 };
    const sender = new Sender(
      {
        turn,
        clock,
        random: Math.random,
        log: quiet,
        connect: (url, signal) => connectSocket(url, identity(), { clock, signal }, options),
      },
      {
        ...defaultSenderBounds,
        backoffMaxMs: 500,
        retryAfterMaxMs: 500,
        shard: shardName(this.name),
        process: randomUUID(),
        takesOver: true,
        urls: [`https://127.0.0.1:${port}${connectPath}`],
        agent: 'model',
      },
    );
    for (const type of modelTypes) sender.add(this.#sliceOf(type), this.#source(type));
    const stop = new AbortController();
    const ended = sender.run(stop.signal);
    const pushing: Pushing = {
      sender,
      ended,
      stop: async () => {
        stop.abort();
        await ended;
        this.#pushings.delete(pushing);
      },
    };
    this.#pushings.add(pushing);
    return pushing;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pushings].map(({ stop }) => stop()));
  }

  #sliceOf({ group, resource }: ModelType): Slice {
    return { shard: shardName(this.name), resource: { group, resource, identity: '' } };
  }

  #source(type: ModelType): SliceSource {
    return { connected: true, open: (signal) => this.#send(type, signal) };
  }

  async *#send(type: ModelType, signal: AbortSignal): AsyncGenerator<readonly Outgoing[]> {
    this.syncs += 1;
    let waiting: Outgoing[] = [];
    let wake = (): void => {};
    const feed = (changed: ModelType, outgoing: Outgoing): void => {
      if (changed === type) waiting.push(outgoing);
      wake();
    };
    this.#feeds.add(feed);
    const leave = (): void => wake();
    signal.addEventListener('abort', leave);
    try {
      const all = this.objects.filter((object) => object.type === type);
      yield [{ kind: 'begin', revision: '' }];
      for (let at = 0; at < all.length; at += batch)
        yield all.slice(at, at + batch).map((object) => ({ kind: 'put', version: type.version, object: written(object) }));
      yield [{ kind: 'end', revision: '' }];
      while (!signal.aborted) {
        const outgoing = waiting;
        waiting = [];
        if (outgoing.length > 0) yield outgoing;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      this.#feeds.delete(feed);
      signal.removeEventListener('abort', leave);
    }
  }
}

function keyOf({ resource }: ModelType, name: string): string {
  return `${resource}/${name}`;
}

function written({ type: { group, version, kind }, name, turn, isPublic, bytes }: ModelObject): PushedObject {
  return pushedObject({
    apiVersion: `${group}/${version}`,
    kind,
    metadata: { name, uid: `uid-of-${name}`, labels: { turn: String(turn), public: String(isPublic) } },
    spec: { text: 'x'.repeat(bytes) },
  });
}
