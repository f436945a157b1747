/**
 * One connection between two caches. After the greeting each end sends its policies and its
 * inventory; then both ends send and receive.
 *
 *   meet ─▶ send policy, inventory ─▶ get policy, whole inventory ─▶ sending half runs ─▶ closed
 *                                  └▶ receiving half runs, from the policy on
 *
 * Z1 The sending half sends nothing until the peer's policy and all of its inventory have arrived.
 * Z2 When `run` resolves, no work of the session is under way.
 *
 * Bound: NamedSlices limits how many slices the other end may report, at the opening and again
 * later.
 */
import type { PushOutcome } from '../../domain/push.js';
import type { Resource } from '../../domain/resource.js';
import type { ShardName } from '../../domain/shard.js';
import type { Slice } from '../../domain/slice.js';
import type { Neighbour } from '../../domain/via.js';
import { BadFrame } from '../../frames/bad-frame.js';
import { unavailableRetryMs, type ByeReason } from '../../frames/bye.js';
import type { FrameConnection } from '../../frames/frame-connection.js';
import type { Credit, Frame, FrameLimits, FrameOf } from '../../frames/frame.js';
import type { IntakeRules } from '../../intake/push/receiver-state.js';
import type { HeldRemovals } from '../../intake/shards/held-removals.js';
import { capCredit, creditMax } from './link-sender-queue.js';
import { LinkFilters, formatEndPolicy, parseEndPolicy, type EndPolicy, type EqualFilters } from '../filters/link-filters.js';
import { Inventory, PeerInventory } from './inventory.js';
import { slicesPerTurn } from '../syncs/slice-syncs.js';
import { LinkReceiver, type LinkReceiverTally, type LinkReceiverParts } from './link-receiver.js';
import { LinkSender, type LinkSenderContext, type LinkSenderOptions } from './link-sender.js';
import { PolicyRemovals } from './policy-removals.js';
import { UncoveredSlices } from './uncovered-slices.js';
import type { FreshnessChange } from './freshness-changes.js';
import type { Routes } from '../routes.js';

export type LinkSessionParts = LinkSenderContext &
  Pick<LinkReceiverParts, 'metrics' | 'reported'> &
  Readonly<{
    rules: IntakeRules;
    /**
     * Slices of the shard that a neighbour holds and this cache asks about, because it does not
     * know them.
     */
    unknownOf: (shard: ShardName) => Iterable<Slice>;
    /** Called when the store has accepted the id of the other end. */
    met: () => void;
    removals: HeldRemovals;
    /**
     * The parent has sent its id and those above it. Returns 'loop' if this cache is among them.
     */
    routed: (route: readonly string[]) => 'loop' | undefined;
    /** Called when the policies of both ends are known, or have changed. */
    filtersChanged: () => void;
    equalFilters: EqualFilters;
    /** The other end has removed objects that a sync of this cache did not name. */
    swept: (frame: FrameOf<'swept'>) => Promise<void>;
    routes: Pick<Routes, 'receiveClaim' | 'drained' | 'down' | 'claimFor'>;
    /**
     * Whether the position that the other end sends back shows, for the first time, that this store
     * was rolled back (rollback.ts).
     */
    isRolledBack: (neighbour: Neighbour, position: string) => boolean;
  }>;

/** The cache at the other end, as its greeting describes it. */
export type LinkPeer = Readonly<{ neighbour: Neighbour; cacheId: string; credit: Credit; limits: FrameLimits }>;

/** How the session ended: with the bye of either end. Without a reason, the connection broke. */
export type LinkEnd = Readonly<{ reason: ByeReason | undefined; message: string; retryAfterMs: number | undefined }>;

export class LinkSession {
  readonly #connection: FrameConnection;
  readonly #lane: LinkReceiverParts['lane'];
  readonly #parts: LinkSessionParts;
  readonly #peer: LinkPeer;
  readonly #options: LinkSenderOptions;
  readonly #linkReceiver: LinkReceiver;
  readonly #uncovered: UncoveredSlices;
  readonly #stop = new AbortController();
  readonly #inventory: Inventory;
  readonly #peerInventory = new PeerInventory();
  #isGreeted = false;
  #own: EndPolicy;
  #other: EndPolicy | undefined;
  #filters: LinkFilters | undefined;
  #position: string | undefined;
  #linkSender: LinkSender | undefined;
  #resuming: Promise<void> = Promise.resolve();
  #sending: Promise<void> = Promise.resolve();
  #end: LinkEnd | undefined;

  constructor(
    { connection, lane }: Readonly<{ connection: FrameConnection; lane: LinkReceiverParts['lane'] }>,
    { peer, policy }: Readonly<{ peer: LinkPeer; policy: EndPolicy }>,
    parts: LinkSessionParts,
    options: LinkSenderOptions,
  ) {
    this.#connection = connection;
    this.#lane = lane;
    this.#parts = parts;
    this.#peer = peer;
    this.#own = policy;
    this.#options = options;
    const { neighbour } = peer;
    this.#inventory = new Inventory({ ...parts, known: parts.store.state, connection }, neighbour);
    const filters = (): LinkFilters | undefined => (this.#stop.signal.aborted ? undefined : this.#filters);
    const policyRemovals = new PolicyRemovals(parts, neighbour, filters);
    this.#linkReceiver = new LinkReceiver({ ...parts, neighbour, connection, filters, policyRemovals, lane, log: parts.boundedLog });
    this.#uncovered = new UncoveredSlices({
      ...parts,
      linkReceiver: this.#linkReceiver,
      policyRemovals,
      neighbour,
      filters,
      owned: (work) => this.#owned(work),
    });
  }

  get progress(): LinkSender['progress'] | undefined {
    return this.#linkSender?.progress;
  }

  get received(): LinkReceiverTally {
    return this.#linkReceiver.tally;
  }

  get otherPolicy(): EndPolicy | undefined {
    return this.#other;
  }

  /**
   * Resolves when the connection is closed. Sends `greeting` before anything else, once the store
   * has accepted the id of the other end.
   */
  async run(frames: AsyncIterator<Frame>, greeting: () => readonly Frame[]): Promise<LinkEnd> {
    const { neighbour, cacheId } = this.#peer;
    try {
      const [met] = await this.#lane.push([{ kind: 'meet', neighbour, cacheId }]);
      if (met?.kind === 'bound' || met?.kind === 'full') this.bye('forbidden', whyNotMet(met));
      else if (met?.kind === 'unavailable') this.bye('unavailable', met.refusal.message, unavailableRetryMs);
      else {
        this.#parts.met();
        for (const frame of greeting()) this.#connection.send(frame);
        this.#isGreeted = true;
        this.#sendPolicy();
        // The session reads meanwhile: two caches that only wrote would wait for each other.
        this.#resuming = this.#owned(this.#inventory.sendAll().then(() => this.#linkReceiver.requestReports()));
      }
      await this.#listen(frames);
    } finally {
      this.#stop.abort();
      this.#inventory.close();
      this.#connection.close('shutdown', 'the session is over');
      this.#parts.routes.down(neighbour);
      await Promise.all([this.#linkReceiver.close(), this.#resuming, this.#uncovered.close(), this.#sending]);
    }
    const { code } = await this.#connection.closed;
    return this.#end ?? { reason: undefined, message: `the connection closed with the code ${code}`, retryAfterMs: undefined };
  }

  bye(reason: ByeReason, message: string, retryAfterMs?: number): void {
    this.#end ??= { reason, message, retryAfterMs };
    this.#connection.close(reason, message, retryAfterMs);
  }

  /**
   * Does nothing before the greeting is sent, because the greeting carries the state of that
   * moment.
   */
  send(frame: FrameOf<'route' | 'swept'>): void {
    if (this.#isGreeted) this.#connection.send(frame);
  }

  get bufferedBytes(): number {
    return this.#connection.bufferedBytes;
  }

  changePolicy(policy: EndPolicy): void {
    const before = this.#filters;
    this.#own = policy;
    if (this.#isGreeted) this.#sendPolicy();
    this.#updateFilters();
    if (before !== undefined) this.#uncovered.removeUncovered(before);
  }

  /**
   * Whether the policies of both ends let any object of the slice cross from the other end.
   * Undefined before both are known.
   */
  brings(slice: Slice): boolean | undefined {
    return this.#filters?.from(this.#peer.neighbour).covers(slice);
  }

  acceptsClaim(shard: ShardName): boolean {
    return this.#filters?.acceptsClaim(shard, this.#peer.neighbour) ?? false;
  }

  sendClaim(shard: ShardName): void {
    this.#linkSender?.sendClaim(shard);
  }

  get filters(): LinkFilters | undefined {
    return this.#filters;
  }

  request(slice: Slice): void {
    this.#inventory.request(slice);
  }

  unknownOf(shard: ShardName): Iterable<Slice> {
    return this.#linkSender?.unknownOf(shard) ?? [];
  }

  onFreshnessChange(change: FreshnessChange): void {
    this.#linkSender?.onFreshnessChange(change);
  }

  /** Types were declared; or a type was dropped, with the objects of the slices `gone`. */
  followTypes(types: readonly Resource[], gone: readonly Slice[]): void {
    if (gone.length === 0) this.#linkReceiver.declared();
    else this.#linkReceiver.dropped(gone);
    for (const type of types) this.#linkSender?.followType(type);
  }

  async #listen(frames: AsyncIterator<Frame>): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await frames.next();
        if (done === true || this.#end !== undefined) return;
        // Do not wait for the network here: if each end waited for the other to read, both would
        // wait forever. The credit bounds what this end sends in response to what it reads.
        await this.#receive(value);
      }
    } catch (error) {
      if (!(error instanceof BadFrame)) throw error;
      this.bye('protocol', error.message);
    }
  }

  async #receive(frame: Frame): Promise<void> {
    switch (frame.kind) {
      case 'policy':
        return this.#learnPolicy(frame);
      case 'resume':
        return this.#learnHeld(frame);
      case 'route':
        if (this.#peer.neighbour !== 'parent') return this.bye('protocol', 'only a parent sends its route');
        return this.#parts.routed(frame.route) === undefined ? undefined : this.bye('loop', 'a cache cannot follow a cache below itself');
      case 'heartbeat':
        return this.#linkSender?.report(frame.number);
      case 'ack':
        return this.#linkSender?.acknowledge(frame)
          ? undefined
          : this.bye('protocol', `the other end acknowledged ${frame.sequence}, which was never sent`);
      case 'refuse':
        return this.#linkSender?.refused(frame);
      case 'resync':
        return this.#linkSender?.resync(frame);
      case 'summary':
        return this.#linkSender?.learnSummary(frame);
      case 'swept':
        // The other end cannot have swept objects of a slice of which this end sends nothing.
        return this.#filters?.towards(this.#peer.neighbour).covers(frame.slice) === true ? this.#parts.swept(frame) : undefined;
      case 'claim': {
        if (this.#filters === undefined) return this.bye('protocol', 'claim arrived before the policy');
        this.#linkReceiver.recordClaim(frame, this.#parts.routes.receiveClaim(this.#peer.neighbour, frame));
        await this.#linkSender?.learnChoice(frame);
        return this.#parts.routes.drained();
      }
      case 'put':
      case 'delete':
      case 'begin':
      case 'end':
      case 'progress':
      case 'digest':
      case 'report':
        return this.#filters === undefined
          ? this.bye('protocol', `${frame.kind} arrived before the policy`)
          : this.#linkReceiver.accept(frame);
      case 'bye':
        return void (this.#end ??= frame);
      default:
        return this.bye('protocol', `a cache must not send the frame ${frame.kind} on an open link`);
    }
  }

  #learnPolicy({ up, down }: FrameOf<'policy'>): void {
    const policy = parseEndPolicy({ up, down });
    if (policy === undefined) return this.bye('protocol', 'the policy is not valid');
    const isFirst = this.#other === undefined;
    this.#other = policy;
    this.#updateFilters();
    if (isFirst) this.#uncovered.removeUncovered(undefined);
  }

  async #learnHeld({ position, held, isLast }: FrameOf<'resume'>): Promise<void> {
    for (let at = 0; at < held.length; at += slicesPerTurn) {
      if (at > 0) await this.#parts.turn();
      if (this.#stop.signal.aborted) return;
      const some = held.slice(at, at + slicesPerTurn);
      if (!(this.#linkSender?.receiveInventory(some) ?? this.#peerInventory.update(some)))
        return this.bye('protocol', 'resume names too many slices');
    }
    if (this.#linkSender !== undefined) return;
    if (isLast) this.#position = position;
    this.#start();
  }

  #updateFilters(): void {
    if (this.#other === undefined) return;
    this.#filters = new LinkFilters(this.#own, this.#other, this.#peer.neighbour, this.#parts.equalFilters);
    if (this.#linkSender === undefined) this.#start();
    else this.#linkSender.changeFilters(this.#filters);
    this.#parts.filtersChanged();
  }

  #start(): void {
    if (this.#filters === undefined || this.#position === undefined || this.#linkSender !== undefined) return;
    const { neighbour, credit, limits } = this.#peer;
    // Send nothing more over this link. `Rollback` ends all links once the store has marked every
    // slice stale.
    if (this.#parts.isRolledBack(neighbour, this.#position)) return void (this.#position = undefined);
    const receiver = { position: this.#position, held: this.#peerInventory, credit: capCredit(credit, creditMax), limits };
    const claimFor = (to: Neighbour, shard: ShardName) => this.#parts.routes.claimFor(to, shard);
    const parts = { ...this.#parts, connection: this.#connection, inventory: this.#inventory, claimFor };
    this.#linkSender = new LinkSender(parts, { to: neighbour, filters: this.#filters, receiver }, this.#options);
    // The claims follow the inventory. The other end's sending half needs both, and starts only
    // once it has the inventory.
    this.#sending = this.#owned(this.#resuming.then(() => this.#linkSender?.run(this.#stop.signal)));
  }

  /** An error of the work is a bug: log it and cut the connection. */
  async #owned(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#parts.log.error('link.failed', { neighbour: this.#peer.neighbour, error });
      this.#connection.terminate();
    }
  }

  #sendPolicy(): void {
    this.#connection.send({ kind: 'policy', ...formatEndPolicy(this.#own) });
  }
}

/** The message to the other end when the store refuses its id. */
function whyNotMet(outcome: Extract<PushOutcome, { kind: 'bound' | 'full' }>): string {
  if (outcome.kind === 'bound') return `the cache id that you sent is already the id of ${outcome.name}: check whether a disk was copied`;
  return 'this cache remembers too many children: forget some with strata caches forget';
}
