/**
 * A shard's pusher: the real sender over the simulated network, and the shard that it reads. It
 * takes the shard from the present pusher, or waits until that one is gone. Once it is fenced it
 * ends for good.
 *
 * It sends the slice of a declared type only while the type is declared, after the declaration, and
 * names every type that it sends.
 */
import type { Log } from '../../src/diagnostics/log.js';
import { CacheError } from '../../src/domain/errors.js';
import { isDeclaring } from '../../src/domain/catalogue/declaration.js';
import type { Key } from '../../src/domain/key.js';
import type { Term } from '../../src/domain/push.js';
import { formatResource, type Resource } from '../../src/domain/resource.js';
import type { ShardName } from '../../src/domain/shard.js';
import type { FrameConnection } from '../../src/frames/frame-connection.js';
import { defaultSenderBounds } from '../../src/sender/sender-options.js';
import { Sender } from '../../src/sender/sender.js';
import { declaredBy, textOfKey, type ModelObject } from './model-rule.js';
import { fractions } from './seeded-random.js';
import { ShardTruth } from './shard-truth.js';
import type { SimParty } from './sim-party.js';
import { SimSource } from './sim-source.js';
import type { SimWorld } from './sim-world.js';

/** `takesOver`: does not wait for the shard's present pusher to leave. */
export type SimPusherOptions = Readonly<{ shard: ShardName; process: string; resources: readonly Resource[]; takesOver?: boolean }>;

const hostPrefix = 'pusher of ';
/** Short, because some tests wait only a second for it. */
const backoffMaxMs = 1_000;

/** The shard that a host of the network pushes; undefined if the host is no pusher. */
export function shardOfHost(host: string): string | undefined {
  return host.startsWith(hostPrefix) ? host.slice(hostPrefix.length).split(' ', 1)[0] : undefined;
}

export class SimPusher implements SimParty {
  readonly shard: ShardName;
  readonly process: string;
  /** What the shard holds, and what it held. */
  readonly truth = new ShardTruth();
  readonly resources: readonly Resource[];
  /** The term that a cache gave it last, the time of that, and that cache's id. */
  term: Term = 0;
  givenMs = 0;
  origin = '';
  /** The name of the cache that last gave it its shard. */
  welcomedBy: string | undefined;
  /** The present objects of the shard, by the text of the key. */
  readonly #objects = new Map<string, ModelObject>();
  readonly #sources: ReadonlyMap<string, SimSource>;
  /** The types, as text, that it sends. */
  readonly #sent = new Set<string>();
  #world: SimWorld | undefined;
  #sender: Sender | undefined;
  /** The caches behind its load balancer: each connection goes to the next of them. */
  #caches: readonly string[] = [];
  #attempts = 0;
  /** The cache that it last connected to. */
  #cache: string | undefined;
  #takesOver: boolean;
  #connection: FrameConnection | undefined;
  #isFenced = false;

  constructor({ shard, process, resources, takesOver = true }: SimPusherOptions) {
    this.#takesOver = takesOver;
    this.shard = shard;
    this.process = process;
    this.resources = resources;
    this.#sources = new Map(
      resources.map((resource) => [formatResource(resource), new SimSource(() => (isDeclaring(resource) ? this.#follow() : undefined))]),
    );
  }

  /** The cache that it last connected to. */
  get cache(): string | undefined {
    return this.#cache;
  }

  get objects(): readonly ModelObject[] {
    return [...this.#objects.values()];
  }

  /** A higher claim has the shard, so this pusher never pushes again. */
  get isFenced(): boolean {
    return this.#isFenced;
  }

  /** Its cache has acknowledged everything, or lets it wait. */
  get isQuiet(): boolean {
    if (this.#isFenced) return true;
    const { connection, slices } = this.#sender?.state ?? {};
    if (connection?.kind === 'standby') return true;
    if (connection?.kind !== 'connected' || slices === undefined) return false;
    const isRead = [...this.#sent].every((name) => this.#sources.get(name)?.isRead === true);
    return (
      isRead && slices.every(({ phase, unacknowledged, lagMs }) => phase === 'synced' && unacknowledged.mutations === 0 && lagMs === 0)
    );
  }

  /** Joins a world, once. */
  begin(world: SimWorld): void {
    if (this.#world !== undefined) return;
    this.#world = world;
    this.truth.begin(world.time);
    const takesOver = (): boolean => this.#takesOver;
    const sender = new Sender(
      {
        clock: world.time,
        random: fractions(world.random(this.host)),
        turn: () => world.time.turn(),
        log: this.#log(world),
        connect: (_, signal) => this.#connect(world, signal),
      },
      {
        ...defaultSenderBounds,
        backoffMaxMs,
        shard: this.shard,
        process: this.process,
        get takesOver() {
          return takesOver();
        },
        urls: ['the cache'],
        agent: 'simulation',
      },
    );
    this.#sender = sender;
    this.#follow();
    sender.complete(true);
    world.own(this.host, sender.run(new AbortController().signal));
  }

  /** From now on it waits while another pusher has the shard. */
  yield(): void {
    this.#takesOver = false;
  }

  /** Leaves its present cache; connects to this one, to several by turns, or to none. */
  connectTo(...caches: readonly string[]): void {
    if (caches.join() === this.#caches.join()) return;
    this.#caches = caches;
    this.#connection?.terminate();
  }

  put(object: ModelObject): void {
    this.#objects.set(textOfKey(object.key), object);
    this.#changed(object.key, object);
  }

  remove(key: Key): void {
    this.#objects.delete(textOfKey(key));
    this.#changed(key, undefined);
  }

  /** Its name in the network. */
  get host(): string {
    return `${hostPrefix}${this.shard} ${this.process}`;
  }

  #changed(key: Key, object: ModelObject | undefined): void {
    this.truth.set(key, object);
    this.#sources.get(formatResource(key.resource))?.set(key, object);
  }

  /**
   * Sends the built-in types, and the declared types once their declarations are sent; nothing
   * else.
   */
  #follow(): void {
    const [sender, { shard }] = [this.#sender, this];
    const declarations = this.resources.find(isDeclaring);
    const isRead = declarations !== undefined && this.#sources.get(formatResource(declarations))?.isRead === true;
    const declared = declaredBy(this.objects);
    for (const resource of this.resources) {
      const name = formatResource(resource);
      const source = this.#sources.get(name);
      const isBuiltIn = resource.identity === '';
      const isWanted = isBuiltIn || declared.has(name);
      if (source === undefined || isWanted === this.#sent.has(name) || !(isBuiltIn || isRead)) continue;
      if (!isWanted) sender?.withdraw({ shard, resource });
      else
        sender?.add(
          { shard, resource },
          source,
          isBuiltIn || declarations === undefined ? {} : { after: { shard, resource: declarations } },
        );
      if (isWanted) this.#sent.add(name);
      else this.#sent.delete(name);
    }
  }

  async #connect({ network }: SimWorld, signal: AbortSignal): Promise<FrameConnection> {
    const cache = this.#caches[this.#attempts % this.#caches.length];
    if (cache === undefined) throw new CacheError('there is no cache to connect to');
    this.#attempts += 1;
    this.#cache = cache;
    this.#connection = await network.connect(this.host, cache, signal);
    // `connectTo` was called while this connection was being opened.
    if (!this.#caches.includes(cache)) this.#connection.terminate();
    return this.#connection;
  }

  /**
   * Reads from the sender's log which term it was given, and that it is fenced, which is no fault.
   */
  #log(world: SimWorld): Log {
    const heard = world.log(this.host);
    const log: Log = {
      ...heard,
      info: (event, { term, cacheId } = {}) => {
        if (event === 'sender.connected') this.welcomedBy = this.#cache;
        if (event !== 'sender.connected' || term === this.term) return;
        [this.term, this.origin, this.givenMs] = [Number(term), String(cacheId), world.time.now()];
      },
      error: (event, fields = {}) => {
        if (event === 'sender.refused-permanently' && fields['reason'] === 'fenced') this.#isFenced = true;
        else heard.error(event, fields);
      },
      child: () => log,
    };
    return log;
  }
}
