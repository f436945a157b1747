/**
 * One connection between two caches, the same at both ends once they have greeted each other: each tells the other its policies and
 * what it holds already, then both send and receive.
 *
 *   meet ─▶ policy, resume out ─▶ policy in, all of resume in ─▶ sending half runs ─▶ either side ends
 *                              └▶ receiving half, from the policy on
 *
 * Z1 Nothing of this side's is told before the other's policy is known and all it holds.
 * Z2 When the session ends nothing of it is under way.
 * Bounds: `heldMax` slices that the other end may say it holds, at the opening and as many later.
 */
import { unreachable } from '../domain/errors.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import { BadFrame } from '../frames/bad-frame.js';
import { unavailableRetryMs, type ByeReason } from '../frames/bye.js';
import type { FrameConnection } from '../frames/frame-connection.js';
import type { Frame, FrameOf, HeldSlice } from '../frames/frame.js';
import { capCredit, creditMax } from './credit.js';
import { heldMax } from './courses.js';
import { Edges, formatEndPolicy, parseEndPolicy, type EndPolicy } from './edges.js';
import { HeldSlices } from './held-slices.js';
import { inflowContext } from './inflow-context.js';
import { LinkPaths } from './link-paths.js';
import { whyNotMet, type LinkEnd, type LinkPeer, type LinkSessionParts } from './link-session-parts.js';
import { LinkInflow, type InflowTally, type LinkInflowParts } from './link-inflow.js';
import { Outflow } from './outflow.js';
import { PolicyRemovals } from './policy-removals.js';
import { UncoveredSlices } from './uncovered-slices.js';
import type { OutflowOptions, OutflowParts } from './outflow-options.js';
import type { News } from './tellers.js';

export class LinkSession {
  readonly #connection: FrameConnection;
  readonly #lane: LinkInflowParts['lane'];
  readonly #parts: LinkSessionParts;
  readonly #peer: LinkPeer;
  readonly #options: OutflowOptions;
  readonly #paths: LinkPaths;
  readonly #inflow: LinkInflow;
  readonly #uncovered: UncoveredSlices;
  readonly #stop = new AbortController();
  readonly #heldHere: HeldSlices;
  /** What the other end holds. */
  readonly #held: HeldSlice[] = [];
  #heldCount = 0;
  #isGreeted = false;
  #own: EndPolicy;
  #other: EndPolicy | undefined;
  #edges: Edges | undefined;
  #position: string | undefined;
  #outflow: Outflow | undefined;
  #resuming: Promise<void> = Promise.resolve();
  #sending: Promise<void> = Promise.resolve();
  #end: LinkEnd | undefined;

  constructor(
    { connection, lane }: Readonly<{ connection: FrameConnection; lane: LinkInflowParts['lane'] }>,
    { peer, policy }: Readonly<{ peer: LinkPeer; policy: EndPolicy }>,
    parts: LinkSessionParts,
    options: OutflowOptions,
  ) {
    this.#connection = connection;
    this.#lane = lane;
    this.#parts = parts;
    this.#peer = peer;
    this.#own = policy;
    this.#options = options;
    this.#heldHere = new HeldSlices({ ...parts, connection }, peer.side);
    this.#paths = new LinkPaths({ store: parts.store, from: peer.side, edges: () => this.#edges });
    const edges = (): Edges | undefined => (this.#stop.signal.aborted ? undefined : this.#edges);
    const policyRemovals = new PolicyRemovals(parts, peer.side, edges);
    const inflowParts = { ...parts, connection, paths: this.#paths, policyRemovals, lane, log: parts.boundedLog };
    this.#inflow = new LinkInflow(inflowParts, () => this.#context());
    const owned = (work: Promise<void>): Promise<void> => this.#owned(work);
    this.#uncovered = new UncoveredSlices({ ...parts, inflow: this.#inflow, policyRemovals, side: peer.side, edges, owned });
  }

  /** How far the sending half is; undefined before it runs. */
  get progress(): Outflow['progress'] | undefined {
    return this.#outflow?.progress;
  }

  /** What has come over it. */
  get received(): InflowTally {
    return this.#inflow.tally;
  }

  /** What the other end lets through; undefined before it has said so. */
  get otherPolicy(): EndPolicy | undefined {
    return this.#other;
  }

  /** Until the connection is closed. `greeting` is said once the store has met the other end, before anything else. */
  async run(frames: AsyncIterator<Frame>, greeting: () => readonly Frame[]): Promise<LinkEnd> {
    const { side, cacheId } = this.#peer;
    try {
      const [met] = await this.#lane.push([{ kind: 'meet', side, cacheId }]);
      if (met?.kind === 'bound' || met?.kind === 'full') this.bye('forbidden', whyNotMet(met));
      else if (met?.kind === 'unavailable') this.bye('unavailable', met.refusal.message, unavailableRetryMs);
      else {
        this.#parts.met();
        for (const frame of greeting()) this.#connection.send(frame);
        this.#isGreeted = true;
        this.#sendPolicy();
        // Beside reading: two caches that both only wrote would wait for each other.
        this.#resuming = this.#owned(this.#heldHere.tellAll().then(() => this.#inflow.ask()));
      }
      await this.#listen(frames);
    } finally {
      this.#stop.abort();
      this.#heldHere.close();
      this.#connection.close('shutdown', 'the session is over');
      this.#parts.routes.down(side);
      await Promise.all([this.#inflow.close(), this.#resuming, this.#uncovered.close(), this.#sending]);
    }
    const { code } = await this.#connection.closed;
    return this.#end ?? { reason: undefined, message: `the connection closed with ${code}`, retryAfterMs: undefined };
  }

  bye(reason: ByeReason, message: string, retryAfterMs?: number): void {
    this.#end ??= { reason, message, retryAfterMs };
    this.#connection.close(reason, message, retryAfterMs);
  }

  terminate(): void {
    this.#connection.terminate();
  }

  /** Not before this end has greeted; the greeting tells how things are by then. */
  send(frame: FrameOf<'route' | 'unstated'>): void {
    if (this.#isGreeted) this.#connection.send(frame);
  }

  get bufferedBytes(): number {
    return this.#connection.bufferedBytes;
  }

  /** This end's policy has changed. */
  changePolicy(policy: EndPolicy): void {
    const before = this.#edges;
    this.#own = policy;
    if (this.#isGreeted) this.#sendPolicy();
    this.#settleEdges();
    if (before !== undefined) this.#uncovered.letGo(before);
  }

  /** Whether both ends let anything of a slice come from the other one; undefined before that is known. */
  brings(slice: Slice): boolean | undefined {
    return this.#edges?.from(this.#peer.side).covers(slice);
  }

  /** Whether the other end may claim a shard. */
  hearsClaim(shard: ShardName): boolean {
    return this.#edges?.hearsClaim(shard, this.#peer.side) ?? false;
  }

  /** What is told of a shard has changed. */
  tellClaim(shard: ShardName): void {
    this.#outflow?.tellClaim(shard);
  }

  /** What this link lets through; undefined before that is known. */
  get edges(): Edges | undefined {
    return this.#edges;
  }

  hear(news: News): void {
    this.#outflow?.hear(news);
  }

  declared(): void {
    this.#inflow.declared();
  }

  dropped(slices: readonly Slice[]): void {
    this.#inflow.dropped(slices);
  }

  async #listen(frames: AsyncIterator<Frame>): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await frames.next();
        if (done === true || this.#end !== undefined) return;
        // Were it no longer read while it does not read, both ends would wait. What reading makes us send is bounded by the credit.
        await this.#take(value);
      }
    } catch (error) {
      if (!(error instanceof BadFrame)) throw error;
      this.bye('protocol', error.message);
    }
  }

  async #take(frame: Frame): Promise<void> {
    switch (frame.kind) {
      case 'policy':
        return this.#learnPolicy(frame);
      case 'resume':
        return this.#learnHeld(frame);
      case 'route':
        if (this.#peer.side === 'parent' && this.#parts.routed(frame.route) === undefined) return;
        return this.bye('loop', 'this cache is above the one it follows');
      case 'heartbeat':
        return this.#outflow?.report(frame.number);
      case 'ack':
        return this.#outflow?.acknowledge(frame) ? undefined : this.bye('protocol', `${frame.sequence} was acknowledged and never sent`);
      case 'refuse':
        return this.#outflow?.refused(frame);
      case 'restate':
        return this.#outflow?.restate(frame);
      case 'summary':
        return this.#outflow?.learnSummary(frame);
      case 'unstated':
        return this.#parts.unstated(frame);
      case 'claim': {
        if (this.#edges === undefined) return this.bye('protocol', 'claim came before the policy');
        this.#inflow.noteClaim(frame, this.#parts.routes.hear(this.#peer.side, frame));
        await this.#outflow?.learnChoice(frame);
        return this.#parts.routes.room();
      }
      case 'put':
      case 'delete':
      case 'begin':
      case 'end':
      case 'progress':
      case 'digest':
      case 'report':
        return this.#edges === undefined ? this.bye('protocol', `${frame.kind} came before the policy`) : this.#inflow.take(frame);
      case 'bye':
        return void (this.#end ??= frame);
      case 'hello':
      case 'welcome':
      case 'standby':
      case 'status':
      case 'types':
        return this.bye('protocol', `${frame.kind} is no frame of a link that is open`);
      default:
        return unreachable(frame);
    }
  }

  #learnPolicy({ up, down }: FrameOf<'policy'>): void {
    const policy = parseEndPolicy({ up, down });
    if (policy === undefined) return this.bye('protocol', 'the policy is none');
    const isFirst = this.#other === undefined;
    this.#other = policy;
    this.#settleEdges();
    if (isFirst) this.#uncovered.letGo(undefined);
  }

  #learnHeld({ position, held, isLast }: FrameOf<'resume'>): void {
    if (this.#outflow === undefined) this.#heldCount += held.length;
    if (this.#heldCount > heldMax || this.#outflow?.hold(held) === false) return this.bye('protocol', 'resume tells of too many slices');
    if (this.#outflow !== undefined) return;
    this.#held.push(...held);
    if (isLast) this.#position = position;
    this.#start();
  }

  #settleEdges(): void {
    if (this.#other === undefined) return;
    this.#edges = new Edges(this.#own, this.#other, this.#peer.side, this.#parts.equalEdges);
    if (this.#outflow === undefined) this.#start();
    else this.#outflow.changeEdges(this.#edges);
    this.#parts.settled();
  }

  #start(): void {
    if (this.#edges === undefined || this.#position === undefined || this.#outflow !== undefined) return;
    const { side, credit, limits } = this.#peer;
    // Nothing is told over it any more: it ends with all others once everything is doubted.
    if (this.#parts.isRolledBack(side, this.#position)) return void (this.#position = undefined);
    const receiver = { position: this.#position, held: this.#held.splice(0), credit: capCredit(credit, creditMax), limits };
    const claimFor: OutflowParts['claimFor'] = (to, shard) => this.#parts.routes.claimFor(to, shard);
    const parts = { ...this.#parts, connection: this.#connection, heldHere: this.#heldHere, claimFor };
    this.#outflow = new Outflow(parts, { to: side, edges: this.#edges, receiver }, this.#options);
    // Claims come behind what is held: only then does the other end hear them.
    this.#sending = this.#owned(this.#resuming.then(() => this.#outflow?.run(this.#stop.signal)));
  }

  /** A bug in it must not float: it cuts the connection off, and is told. */
  async #owned(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#parts.log.error('link.failed', { side: this.#peer.side, error });
      this.#connection.terminate();
    }
  }

  #sendPolicy(): void {
    this.#connection.send({ kind: 'policy', ...formatEndPolicy(this.#own) });
  }

  #context() {
    const { known, removals, intake } = this.#parts;
    return inflowContext({ from: this.#peer.side, edges: this.#edges, known, paths: this.#paths, removals, intake });
  }
}
