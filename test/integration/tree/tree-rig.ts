/**
 * Caches in memory with real trees: their links are connections in memory, and the test advances
 * time.
 */
import { setImmediate } from 'node:timers';
import { setImmediate as turn } from 'node:timers/promises';
import { BoundedLog } from '../../../src/diagnostics/bounded-log.js';
import type { Log } from '../../../src/diagnostics/log.js';
import { createMetrics } from '../../../src/diagnostics/metrics.js';
import type { Caller } from '../../../src/domain/caller.js';
import type { FrameConnection } from '../../../src/frames/frame-connection.js';
import type { Frame, FrameOf } from '../../../src/frames/frame.js';
import { HeldRemovals } from '../../../src/intake/shards/held-removals.js';
import type { PublishedState } from '../../../src/domain/published-state.js';
import { defaultSenderBounds } from '../../../src/sender/sender-options.js';
import { ChildShards } from '../../../src/tree/child-shards.js';
import { Tree, type TreeOptions, type TreeParts } from '../../../src/tree/tree.js';
import type { LinkPolicies } from '../../../src/domain/link-policies.js';
import { typeOf as builtIn } from '../../support/intake/a-receiver.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { aPolicy } from '../../support/link-rules.js';
import { MemoryDisk, type MemoryStore } from '../../support/store/memory-disk.js';
import { ConnectionEnd } from './connection-pair.js';

const limits = { frameBytesMax: 1_000_000, frameMutationsMax: 100, bodyBytesMax: 100_000 };
const credit = { mutations: 200, bytes: 1_000_000 };

export type RigCache = Readonly<{
  name: string;
  store: MemoryStore;
  known: PublishedState;
  tree: Tree;
  disk: MemoryDisk;
  logged: readonly Readonly<{ event: string; fields: unknown }>[];
  /** The keys that its watches had to report as absent. */
  absent: readonly string[];
  /** Sends a bye to its neighbours. */
  stop: () => void;
}>;

type CacheOptions = Partial<TreeOptions> &
  Readonly<{
    disk?: MemoryDisk;
    policies?: LinkPolicies;
    pushers?: TreeParts['pushers'];
    soon?: (task: () => void) => void;
    typeOf?: TreeParts['rules']['typeOf'];
  }>;

const stepMs = 1_000;

export const alwaysThere: TreeParts['pushers'] = {
  freshness: () => ({ connected: true, lagMs: 0, whole: true }),
  present: new Map(),
  keeps: () => false,
  leavesOut: () => false,
  follow: () => ({ cancel: () => {} }),
};

const everything = aPolicy({ types: ['*'] });

const openPolicies: LinkPolicies = {
  forward: everything,
  follow: everything,
  children: new Map([['*', { accept: aPolicy({ shards: ['*'] }), offer: everything }]]),
};

export class TreeRig {
  readonly clock = new ManualClock();
  /** Both ends of each connection, the child's first, in the order in which they were opened. */
  readonly connections: (readonly [ConnectionEnd, ConnectionEnd])[] = [];
  readonly tried: string[] = [];
  /** Functions that accept connections, by URL; any other URL refuses. */
  readonly #listeners = new Map<string, (connection: ConnectionEnd, from: string) => void>();
  readonly refusals = new Map<string, Error>();
  #random = 0;

  /** Opens a cache whose URL is its name. */
  async cache(
    name: string,
    {
      disk = MemoryDisk.blank(() => (this.#random = (this.#random + 0.37) % 1)),
      policies = openPolicies,
      soon = (task) => void setImmediate(task),
      pushers = alwaysThere,
      typeOf = builtIn,
      ...options
    }: CacheOptions = {},
  ): Promise<RigCache> {
    const { clock } = this;
    const store = disk.open({ clock, soon, random: () => 0.5 });
    const known = store.state;
    const logged: Readonly<{ event: string; fields: unknown }>[] = [];
    const log = recordingLog(logged);
    const absent: string[] = [];
    const tree = new Tree(
      {
        store,
        clock,
        random: () => 0,
        turn,
        log,
        boundedLog: new BoundedLog({ clock, log }),
        metrics: createMetrics({ processMetrics: false }),
        pushers,
        sendPushersAway: () => {},
        removals: new HeldRemovals({ clock, log }, { percentMax: 50, removesMin: 100, graceMs: 3_600_000 }),
        reportAbsent: async ({ cluster, name }) => void absent.push(`${cluster}|${name}`),
        rules: { typeOf, credit, limits, systemClusters: new Set() },
        childShards: new ChildShards(known, 1_000),
        connect: (url) => this.#connect(url, name),
      },
      policies,
      {
        ...defaultSenderBounds,
        progressIntervalMs: 5_000,
        digestIntervalMs: 600_000,
        refusedRetryMs: 30_000,
        readyGraceMs: 10_000,
        urls: [],
        name,
        term: 1_000,
        agent: 'rig',
        ...options,
      },
    );
    const stopping = new AbortController();
    this.listen(name, (connection, from) => void this.#accept(tree, connection, from));
    void tree.run(stopping.signal);
    const stop = (): void => {
      this.#listeners.delete(name);
      stopping.abort();
      tree.close();
    };
    return { name, store, known, tree, disk, logged, absent, stop };
  }

  listen(url: string, take: (connection: ConnectionEnd, from: string) => void): void {
    this.#listeners.set(url, take);
  }

  unlisten(url: string): void {
    this.#listeners.delete(url);
  }

  /** Waits until nothing more can happen without time passing. */
  async settle(): Promise<void> {
    const quietTurns = 8;
    for (let quiet = 0, before = -1; quiet < quietTurns; quiet += 1) {
      await turn();
      const now = this.tried.length + this.connections.flat().reduce((sum, { sent }) => sum + sent.length, 0);
      if (now !== before) quiet = 0;
      before = now;
    }
  }

  /**
   * Advances in steps shorter than any wait here, so that a question of one step is answered in a
   * later step.
   */
  async advance(ms: number): Promise<void> {
    await this.settle();
    for (let left = ms; left >= 0; left -= stepMs) {
      this.clock.advance(Math.min(left, stepMs));
      await this.settle();
    }
  }

  async #connect(url: string, from: string): Promise<FrameConnection> {
    this.tried.push(url);
    const take = this.#listeners.get(url);
    const refusal = this.refusals.get(url);
    if (refusal !== undefined) throw refusal;
    if (take === undefined) throw new Error(`nobody listens at ${url}`);
    const pair = ConnectionEnd.pair([from, url]);
    this.connections.push(pair);
    take(pair[1], from);
    return pair[0];
  }

  async #accept(tree: Tree, connection: ConnectionEnd, from: string): Promise<void> {
    const frames = connection.frames();
    const { value } = await frames.next();
    if (value?.kind === 'hello') await tree.accept(connection, { hello: value, frames, caller: aCaller(from) });
  }
}

export function aCaller(name: string): Caller {
  return { user: name, groups: ['strata'], speaksFor: { kind: 'cache', name } };
}

export function aHello(overrides: Partial<FrameOf<'hello'>> = {}): FrameOf<'hello'> {
  const greeting = {
    protocol: 1,
    role: 'cache',
    name: 'east',
    process: '',
    term: 1_000,
    takesOver: false,
    route: ['id-of-east'],
    agent: 'test',
  } as const;
  return { kind: 'hello', ...greeting, credit, limits, ...overrides };
}

export function aWelcome(cacheId = 'id-of-root', overrides: Partial<FrameOf<'welcome'>> = {}): FrameOf<'welcome'> {
  return { kind: 'welcome', protocol: 1, cacheId, epoch: 1, term: 0, credit, limits, ...overrides };
}

const everythingText = JSON.stringify([{ types: ['*'] }]);

/**
 * What a cache sends after the greeting: a policy that allows everything, and a resume of nothing.
 */
export function aBeginning(): readonly Frame[] {
  return [
    { kind: 'policy', up: everythingText, down: everythingText },
    { kind: 'resume', position: '', held: [], isLast: true },
  ];
}

/** The reasons of the byes that this end has sent. */
export function byesOf({ sent }: ConnectionEnd): readonly string[] {
  return sent.flatMap((frame) => (frame.kind === 'bye' ? [frame.reason] : []));
}

function recordingLog(logged: Readonly<{ event: string; fields: unknown }>[]): Log {
  const write = (event: string, fields?: unknown): void => void logged.push({ event, fields });
  const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log };
  return log;
}
