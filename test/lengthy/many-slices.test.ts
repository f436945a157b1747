/**
 * What twenty thousand slices on one link cost the receiver while all are open, and a parent whose
 * children hold all of them. Figures are processor time of the serving thread, because other
 * programs use the machine too.
 */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { kcpTypes } from '../../src/domain/catalogue/catalogue-kcp.js';
import type { Slice } from '../../src/domain/slice.js';
import type { Frame } from '../../src/frames/frame.js';
import { aProcessTree } from '../support/crash/process-tree.js';
import { shardName } from '../support/objects.js';
import { claim, openChild } from '../support/raw-child.js';
import { pushedObject, type RawPusher } from '../support/raw-pusher.js';
import { StrataProcess } from '../support/strata-process.js';
import { until } from '../support/test-server.js';

const shards = 910;
const shardsChanged = 364;
const children = 8;
const intervalMs = 5_000;
const settleMs = 3_000;
const quietIntervals = 3;
const patienceMs = 60_000;
const openMsMax = 6_000;
const changeMsMax = 6_000;
const syncMsMax = 10_000;
const idleMsMax = 25;
const slicesPerBatch = 1_000;
const credit = { mutations: 10_000, bytes: 10_000_000 };
const nothing = '[]';
/** One rule for the shards whose slices stay the same, another for the rest. */
const otherRules = JSON.stringify([
  { types: ['*'], shards: Array.from({ length: shards - shardsChanged }, (_, i) => `s${shardsChanged + i}`) },
  { types: ['*'], clusters: ['acme'] },
]);

const slices = Array.from({ length: shards }, (_, i) =>
  kcpTypes.map(({ group, resource, identity, kind, storageVersion: version, namespaced }) => {
    const metadata = { name: 'one', uid: `uid-${i}`, ...(namespaced && { namespace: 'default' }) };
    const slice: Slice = { shard: shardName(`s${i}`), resource: { group, resource, identity } };
    return { slice, version, object: pushedObject({ apiVersion: `${group}/${version}`, kind, metadata }) };
  }),
).flat();

test.serial('20,000 slices that are open on one link do not slow each other down, nor do those that a policy change resyncs', async (t) => {
  const { server, feeder } = await aParentOfMany(t);
  const opening = await servingMs(server, () => feeder.begin());
  await feeder.end();
  const follower = await LinkEnd.open(server, 'follower');
  await until(() => follower.ends >= slices.length, patienceMs);

  const before = follower.ends;
  const changed = shardsChanged * kcpTypes.length;
  const change = await servingMs(server, async () => {
    follower.raw.socket.send({ kind: 'policy', up: nothing, down: otherRules });
    await until(() => follower.ends >= before + changed, patienceMs);
  });

  t.log(`${slices.length} begins ${Math.round(opening)} ms, a policy change for ${changed} of them ${Math.round(change)} ms`);
  t.true(opening <= openMsMax, `${opening}`);
  t.true(change <= changeMsMax, `${change}`);
});

test.serial('a child that resyncs 8,000 slices after a policy change costs its parent at most 10 s of processor time', async (t) => {
  t.timeout(5 * patienceMs);
  const tree = await aProcessTree(t);
  const root = await tree.start('root');
  const leaf = await tree.start('leaf', { parent: root });
  const feeder = await LinkEnd.open(leaf.process, 'feeder', { hasShards: true });
  const some = slices.slice(0, shardsChanged * kcpTypes.length);
  for (let i = 0; i < shardsChanged; i += 1) claim(feeder.raw, shardName(`s${i}`));
  await feeder.begin(some);
  await feeder.end(some);
  const synced = (): Promise<number> => root.metric('strata_pushes_total', 'outcome="swept"');
  await until(async () => (await synced()) >= some.length, patienceMs);

  const before = await synced();
  const startedMs = performance.now();
  const spent = await servingMs(root.process, async () => {
    await leaf.forwards(`[{types: ['*'], clusters: [acme]}]`);
    await until(async () => (await synced()) >= before + some.length, patienceMs);
  });

  t.log(
    `${some.length} slices were synced again in ${Math.round(performance.now() - startedMs)} ms, ${Math.round(spent)} ms of the parent's`,
  );
  t.true(spent <= syncMsMax, `${spent}`);
});

test.serial('eight children get 20,000 slices each at once, and then cost their parent next to nothing while at rest', async (t) => {
  const { server, feeder } = await aParentOfMany(t);
  await feeder.begin();
  await feeder.end();
  const alone = await quietMs(server);
  const opening = await servingMs(server, async () => {
    const opened = await Promise.all(Array.from({ length: children }, (_, i) => LinkEnd.open(server, `child-${i}`)));
    await until(() => opened.every(({ ends }) => ends >= slices.length), 2 * patienceMs);
  });

  const idle = Math.max(0, (await quietMs(server)) - alone) / children;

  t.log(`a child costs ${Math.round(opening / children)} ms when it comes, and ${idle.toFixed(1)} ms each ${intervalMs / 1_000} s`);
  t.true(idle <= idleMsMax, `${idle}`);
});

/** A server with a child that has claimed all shards. */
async function aParentOfMany(t: ExecutionContext) {
  t.timeout(4 * patienceMs);
  const config = `children: {'*': {accept: [{shards: ['*']}], offer: [{types: ['*']}]}}\n`;
  const server = await StrataProcess.start({ config });
  t.teardown(() => server[Symbol.asyncDispose]());
  const feeder = await LinkEnd.open(server, 'feeder', { hasShards: true });
  for (let i = 0; i < shards; i += 1) claim(feeder.raw, shardName(`s${i}`));
  return { server, feeder };
}

/** Answers on a link as a child cache does, but stores nothing. */
class LinkEnd {
  readonly raw: RawPusher;
  readonly #name: string;
  readonly #hasShards: boolean;
  #acknowledged = 0;
  #taken = 0;
  #told = 0;
  /** Slices that the parent has sent to their end. */
  ends = 0;

  private constructor(raw: RawPusher, name: string, hasShards: boolean) {
    this.raw = raw;
    this.#name = name;
    this.#hasShards = hasShards;
  }

  /** `hasShards`: all shards reach the parent through this child. */
  static async open(server: StrataProcess, name: string, { hasShards = false } = {}): Promise<LinkEnd> {
    const end = new LinkEnd(await openChild(server, name), name, hasShards);
    const asking = end.#askEverySecond();
    void end.#read().finally(() => clearInterval(asking));
    return end;
  }

  async begin(some = slices): Promise<void> {
    await this.#inBatches(some, ({ slice }) => this.raw.begin(slice));
  }

  async end(some = slices): Promise<void> {
    await this.#inBatches(some, ({ slice, version, object }) => {
      this.raw.put(slice, [object], version);
      return this.raw.end(slice, 1, 'a filter');
    });
  }

  async #inBatches(some: typeof slices, send: (each: (typeof slices)[number]) => number): Promise<void> {
    for (let at = 0; at < some.length; at += slicesPerBatch) {
      const last =
        some
          .slice(at, at + slicesPerBatch)
          .map(send)
          .at(-1) ?? 0;
      await until(() => this.#acknowledged >= last, patienceMs);
    }
  }

  async #read(): Promise<void> {
    for (;;) {
      const frame = await this.raw.next().catch(() => undefined);
      if (frame === undefined) return;
      this.#take(frame);
    }
  }

  #take(frame: Frame): void {
    const { socket } = this.raw;
    if (frame.kind === 'ack') this.#acknowledged = frame.sequence;
    if (frame.kind === 'end') this.ends += 1;
    const id = `id-of-${this.#name}`;
    if (frame.kind === 'claim' && !frame.isYours && !this.#hasShards) socket.send({ ...frame, path: [...frame.path, id], isYours: true });
    if (frame.kind === 'begin' && frame.compares === true)
      socket.send({ kind: 'summary', slice: frame.slice, sequence: frame.sequence, digests: new Uint8Array() });
    if (frame.kind === 'heartbeat') this.#answer(frame.number);
    if (!('sequence' in frame) || frame.kind === 'ack' || frame.kind === 'refuse') return;
    const mutations = frame.kind === 'put' ? frame.objects.length : frame.kind === 'delete' ? frame.keys.length : 1;
    this.#taken = frame.sequence + mutations - 1;
    setImmediate(() => this.#acknowledge());
  }

  #acknowledge(): void {
    if (this.#told === this.#taken) return;
    this.#told = this.#taken;
    this.raw.socket.send({ kind: 'ack', sequence: this.#taken, credit });
  }

  #answer(heartbeat: number): void {
    this.raw.numbered((sequence) => ({ kind: 'report', sequence, freshness: [], heartbeat, isAll: true, isComplete: true }));
  }

  #askEverySecond(): NodeJS.Timeout {
    let number = 0;
    return setInterval(() => this.raw.socket.send({ kind: 'heartbeat', number: (number += 1) }), 1_000);
  }
}

/** Processor time of the serving thread during the task, in ms. */
async function servingMs(server: StrataProcess, task: () => Promise<unknown>): Promise<number> {
  const before = await threadMs(server);
  await task();
  return (await threadMs(server)) - before;
}

/**
 * The same for an interval without work: the least of several, because the engine may collect
 * garbage in any.
 */
async function quietMs(server: StrataProcess): Promise<number> {
  await sleep(settleMs);
  let least = Infinity;
  for (let i = 0; i < quietIntervals; i += 1) least = Math.min(least, await servingMs(server, () => sleep(intervalMs)));
  return least;
}

async function threadMs({ pid }: StrataProcess): Promise<number> {
  const [nanoseconds] = (await readFile(`/proc/${pid}/task/${pid}/schedstat`, 'utf8')).split(' ');
  return Number(nanoseconds) / 1e6;
}
