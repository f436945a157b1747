/**
 * How do many children reconnect after their parent has restarted, and what do readers of the
 * parent notice?
 *
 * The children are bare. Each reconnects by the rule and with the bounds of a link, and reports
 * that it holds nothing. It is ready when it has all slices of a shard. Meanwhile one reader
 * requests an object from the parent. There are only four hundred children, because this process
 * does their half of the handshakes. test/unit/tree/link.test.ts shows how a thousand are spread.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StrataProcess } from '../../test/support/strata-process.js';
import { firstAttempt, reconnect, type Attempt, type Parting } from '../../src/sender/reconnect.js';
import { linkReconnectBounds } from '../../src/tree/links/link.js';
import { kcpTypes } from '../../src/domain/catalogue/catalogue-kcp.js';
import { BareCache, manySlices } from '../harness/bare-cache.js';
import { check, type Question } from '../harness/question.js';
import { TreeProcesses } from '../harness/tree-processes.js';

const children = 400;
const readyMsMax = 30_000;
const windowMs = 200;
const shareMax = 0.25;
const readMsMax = 1_000;
const pollMs = 20;
const everything = JSON.stringify([{ types: ['*'] }]);
const nothing = '[]';
const readPath = '/services/cache/shards/shard-0/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports/one';

export const treeReturn: Question = {
  name: 'tier-return',
  family: 'tiers',
  asks: 'How do many children come back when their parent has restarted, and what do its readers notice?',
  needs: ['push'],
  isLong: true,
  async ask() {
    await using tree = await TreeProcesses.open();
    const parent = await tree.start('parent', { flags: [`--push-sessions-per-caller-max=${children}`] });
    const slices = manySlices(kcpTypes.length);
    const feeder = await BareCache.open(parent, 'feeder');
    feeder.policy(everything, nothing);
    feeder.resume();
    await feeder.claim(slices);
    await feeder.begin(slices);
    await feeder.send(slices);

    const stop = new AbortController();
    setMaxListeners(children, stop.signal);
    const returning = Array.from({ length: children }, (_, i) => new Returning(parent, `child-${i}`));
    const running = returning.map((child) => child.run(slices.length, stop.signal));
    await until(() => returning.every(({ readyMs }) => readyMs !== undefined));
    for (const child of returning) child.forget();
    await parent.stop();
    const startedMs = performance.now();
    const resuming = parent.resume();
    const reads = await readUntil(parent, () => returning.every(({ readyMs }) => readyMs !== undefined));
    await resuming;
    const came = returning.map(({ cameMs = Infinity }) => cameMs).toSorted((a, b) => a - b);
    const most = Math.max(...came.map((from, i) => came.filter((at, j) => j >= i && at <= from + windowMs).length));
    const lastReadyMs = Math.max(...returning.map(({ readyMs = Infinity }) => readyMs)) - startedMs;
    stop.abort();
    for (const child of returning) child.terminate();
    await Promise.all(running);
    await feeder.reading;
    return {
      figures: [
        {
          name: `of ${children} children within ${windowMs} ms`,
          value: (100 * most) / children,
          unit: '%',
          limit: { kind: 'at most', value: 100 * shareMax },
        },
        {
          name: 'all are ready, after the parent was started',
          value: lastReadyMs / 1_000,
          unit: 's',
          limit: { kind: 'at most', value: readyMsMax / 1_000 },
        },
        {
          name: 'a read meanwhile, the slowest',
          value: Math.max(...reads),
          unit: 'ms',
          limit: { kind: 'at most', value: readMsMax },
          note: `${reads.length} reads, the median ${reads.toSorted((a, b) => a - b)[reads.length >> 1]?.toFixed(0)} ms`,
        },
      ],
      checks: [check('all of them came back', Number.isFinite(lastReadyMs), `${children} children`)],
    };
  },
};

class Returning {
  readonly #parent: StrataProcess;
  readonly #name: string;
  #cache: BareCache | undefined;
  /** The time at which it began the connection that succeeded. */
  cameMs: number | undefined;
  readyMs: number | undefined;

  constructor(parent: StrataProcess, name: string) {
    this.#parent = parent;
    this.#name = name;
  }

  forget(): void {
    this.cameMs = undefined;
    this.readyMs = undefined;
  }

  terminate(): void {
    this.#cache?.terminate();
  }

  async run(slices: number, signal: AbortSignal): Promise<void> {
    let attempt: Attempt = firstAttempt;
    // Begins as after a lost link, so that the first connections are spread too.
    let parting: Parting = { lastedMs: 0, reason: undefined, message: '', retryAfterMs: undefined };
    while (!signal.aborted) {
      const next = reconnect(attempt, parting, { urls: 1, random: Math.random, bounds: linkReconnectBounds });
      if (next.kind === 'end') throw new Error(`a link ends: ${next.reason}`);
      attempt = next.attempt;
      await sleep(next.afterMs, undefined, { signal }).catch(() => {});
      if (!signal.aborted) parting = await this.#connect(slices);
    }
  }

  async #connect(slices: number): Promise<Parting> {
    const cameMs = performance.now();
    let sinceMs: number | undefined;
    try {
      this.#cache = await BareCache.open(this.#parent, this.#name, this.#parent.master);
      sinceMs = performance.now();
      this.cameMs = cameMs;
      this.#cache.policy(nothing, everything);
      this.#cache.resume();
      await this.#cache.ended(slices);
      this.readyMs = performance.now();
      await this.#cache.reading;
    } catch {
      // The loop reconnects after any error.
    }
    return { lastedMs: sinceMs === undefined ? 0 : performance.now() - sinceMs, reason: undefined, message: '', retryAfterMs: undefined };
  }
}

/** The milliseconds of each read until `holds`, from the first answered one on. */
async function readUntil(parent: StrataProcess, holds: () => boolean): Promise<readonly number[]> {
  const client = parent.client();
  const reads: number[] = [];
  await until(holds, async () => {
    const startedAt = performance.now();
    const answer = await client.raw('GET', readPath).catch(() => undefined);
    if (answer?.status === 200) reads.push(performance.now() - startedAt);
    else await sleep(pollMs);
  });
  return reads;
}

async function until(holds: () => boolean, meanwhile: () => Promise<unknown> = () => sleep(pollMs)): Promise<void> {
  const deadline = performance.now() + 2 * readyMsMax;
  while (!holds() && performance.now() < deadline) await meanwhile();
}
