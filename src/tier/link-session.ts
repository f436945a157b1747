/**
 * One connection between two caches, the same at both ends once they have greeted each other: each tells the other its policies and
 * what it holds already, then both send and receive.
 *
 *   meet ─▶ policy, resume out ─▶ policy in, all of resume in ─▶ sending half runs ─▶ either side ends
 *                              └▶ receiving half, from the policy on
 *
 * Z1 Nothing of this side's is told before the other's policy is known and all it holds.
 * Z2 When the session ends nothing of it is under way.
 * Bounds: `heldMax` slices that the other end may say it holds.
 */
import type { Claim, ShardState } from '../domain/claim.js';
import { parseEdgePolicyText, formatEdgePolicy } from '../domain/edge-policy.js';
import { unreachable } from '../domain/errors.js';
import type { LinkSide } from '../domain/side.js';
import type { Slice } from '../domain/slice.js';
import { BadFrame } from '../frames/bad-frame.js';
import type { ByeReason } from '../frames/bye.js';
import type { FrameConnection } from '../frames/frame-connection.js';
import type { Credit, Frame, FrameLimits, FrameOf, HeldSlice, SliceFreshness } from '../frames/frame.js';
import { capCredit, creditMax } from './credit.js';
import { Edges, type EndPolicy } from './edges.js';
import { HeldSlices } from './held-slices.js';
import { inflowContext, type InflowContextParts } from './inflow-context.js';
import type { InflowContext } from './inflow-state.js';
import { LinkInflow, type InflowTally, type LinkInflowParts } from './link-inflow.js';
import { Outflow } from './outflow.js';
import type { OutflowOptions, OutflowParts } from './outflow-options.js';
import type { News } from './tellers.js';

export type LinkSessionParts = Omit<OutflowParts, 'connection'> &
  Pick<LinkInflowParts, 'metrics'> &
  Readonly<{
    intake: InflowContextParts['intake'];
    /** What the other end tells of its shards' freshness, and of the caches above it. */
    told: (freshness: readonly SliceFreshness[]) => void;
    routed: (route: readonly string[]) => 'loop' | undefined;
    /** The policies of this link have come, or changed. */
    settled: () => void;
    conflict: (claim: Claim, holder: ShardState) => void;
    /** Whether the position that the other end was told shows, for the first time, that this store was rolled back (rollback.ts). */
    isRolledBack: (side: LinkSide, position: string) => boolean;
  }>;

/** The cache at the other end, as the greeting has told. */
export type LinkPeer = Readonly<{ side: LinkSide; cacheId: string; credit: Credit; limits: FrameLimits }>;

/** How it ended: what the other end said, or this one; no reason: it broke. */
export type LinkEnd = Readonly<{ reason: ByeReason | undefined; message: string; retryAfterMs: number | undefined }>;

const heldMax = 200_000;
const unavailableRetryMs = 1_000;

export class LinkSession {
  readonly #connection: FrameConnection;
  readonly #lane: LinkInflowParts['lane'];
  readonly #parts: LinkSessionParts;
  readonly #peer: LinkPeer;
  readonly #options: OutflowOptions;
  readonly #inflow: LinkInflow;
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
  #telling: Promise<void> = Promise.resolve();
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
    this.#inflow = new LinkInflow(
      {
        ...parts,
        connection,
        lane,
        log: parts.boundedLog,
        hold: (shard) => this.#heldHere.tellOf(shard),
        answer: (shard) => this.#outflow?.tellClaim(shard),
      },
      () => this.#context(),
    );
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
      if (met?.kind === 'bound') this.bye('forbidden', `the id of this cache is bound to ${met.name}: was its disk copied?`);
      else if (met?.kind === 'unavailable') this.bye('unavailable', met.refusal.message, unavailableRetryMs);
      else {
        for (const frame of greeting()) this.#connection.send(frame);
        this.#isGreeted = true;
        this.#sendPolicy();
        // Beside reading: two caches that both only wrote would wait for each other.
        this.#telling = this.#owned(this.#heldHere.tellAll());
      }
      await this.#listen(frames);
    } finally {
      this.#stop.abort();
      // Said already, as a rule; a peer that has gone needs no answer.
      this.#connection.close('shutdown', 'the session is over');
      await Promise.all([this.#inflow.close(), this.#telling, this.#sending]);
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
  send(frame: FrameOf<'route'>): void {
    if (this.#isGreeted) this.#connection.send(frame);
  }

  /** This end's policy has changed. */
  changePolicy(policy: EndPolicy): void {
    this.#own = policy;
    if (this.#isGreeted) this.#sendPolicy();
    this.#settleEdges();
  }

  /** Whether both ends let anything of a slice come from the other one; undefined before that is known. */
  brings(slice: Slice): boolean | undefined {
    return this.#edges?.from(this.#peer.side).covers(slice);
  }

  /** Another side claims a shard of the other end's with its rank: whoever has it at home there is to answer. */
  challenge({ shard, incarnation, moves }: Claim): void {
    if (this.#edges?.coverShard(shard) === true) this.#connection.send({ kind: 'claim', shard, incarnation, moves, removed: false });
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
        // Whether the peer takes what we send is no reason not to read: both ends would wait for each other. What reading makes us send, acks
        // and refusals, is bounded by the credit.
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
        return this.bye('loop', 'this cache is above the one it follows', undefined);
      case 'status':
        return this.#parts.told(frame.freshness);
      case 'ack':
        if (this.#outflow?.acknowledge(frame) !== true) this.bye('protocol', `${frame.sequence} was acknowledged and never sent`);
        return;
      case 'refuse':
        return this.#outflow?.refused(frame);
      case 'restate':
        return this.#outflow?.restate(frame);
      case 'claim':
      case 'put':
      case 'delete':
      case 'begin':
      case 'end':
      case 'progress':
      case 'digest':
        return this.#edges === undefined ? this.bye('protocol', `${frame.kind} came before the policy`) : this.#inflow.take(frame);
      case 'bye':
        this.#end ??= frame;
        return;
      case 'hello':
      case 'welcome':
        return this.bye('protocol', `${frame.kind} came twice`);
      default:
        return unreachable(frame);
    }
  }

  #learnPolicy({ up, down }: FrameOf<'policy'>): void {
    const [parsedUp, parsedDown] = [parseEdgePolicyText(up), parseEdgePolicyText(down)];
    if (parsedUp.kind === 'wrong' || parsedDown.kind === 'wrong') return this.bye('protocol', 'the policy is none');
    this.#other = { up: parsedUp.policy, down: parsedDown.policy };
    this.#settleEdges();
  }

  #learnHeld({ position, held, isLast }: FrameOf<'resume'>): void {
    this.#heldCount += held.length;
    if (this.#heldCount > heldMax) return this.bye('protocol', 'resume tells of too many slices');
    if (this.#outflow !== undefined) return this.#outflow.hold(held);
    this.#held.push(...held);
    if (isLast) this.#position = position;
    this.#start();
  }

  #settleEdges(): void {
    if (this.#other === undefined) return;
    this.#edges = new Edges(this.#own, this.#other);
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
    this.#outflow = new Outflow(
      { ...this.#parts, connection: this.#connection },
      { to: side, edges: this.#edges, receiver },
      this.#options,
    );
    this.#sending = this.#owned(this.#outflow.run(this.#stop.signal));
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
    this.#connection.send({ kind: 'policy', up: formatEdgePolicy(this.#own.up), down: formatEdgePolicy(this.#own.down) });
  }

  #context(): InflowContext {
    const { known, clock, intake } = this.#parts;
    return inflowContext({ from: this.#peer.side, edges: this.#edges, known, nowMs: clock.wallMs(), intake });
  }
}
