/**
 * The sending half of a link: tells the cache at the other end what crosses to it, from the change log and, where that is not
 * enough, as statements.
 *
 *   tail   ──────●───────▶ changes of what is told, then `progress`      ┐ by turns, a chunk or a page each,
 *   walks  [begin  page  page …  end]  of slices to be stated            ┘ when there is credit
 *
 * Q1 Nothing waits here for a slow link: what it has not taken is read later, from the log. Memory: the credit, a chunk or page and small
 *    ones before it, and what the tail keeps of commits.
 * Q2 `end` is given only while the slice is synced here; everything else of a slice is told as it comes.
 * Q3 A claim goes before everything of its shard.
 * Q4 Behind the log, everything is stated anew: never a gap.
 */
import { shown } from '../diagnostics/shown.js';
import { Refused } from '../domain/errors.js';
import type { Key } from '../domain/key.js';
import { pause } from '../domain/pause.js';
import type { Revision } from '../domain/revision.js';
import type { ShardName } from '../domain/shard.js';
import { flows, type LinkSide } from '../domain/side.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type { SendingStatus } from '../domain/status.js';
import type { FrameOf, HeldSlice } from '../frames/frame.js';
import { AckWatch } from '../sender/ack-watch.js';
import { Bell } from '../sender/bell.js';
import type { Told } from '../sender/source.js';
import { Courses, shardsPerTurn } from './courses.js';
import { crossingChanges } from './crossing.js';
import type { Edges } from './edges.js';
import { OutgoingClaims } from './outgoing-claims.js';
import { OutgoingReports } from './outgoing-reports.js';
import type { OutflowOptions, OutflowParts, Receiver } from './outflow-options.js';
import { OutflowQueue, placeOf } from './outflow-queue.js';
import { locatePosition } from './position.js';
import { SliceTeller, type SliceTellerParts } from './slice-teller.js';
import type { SliceCourse } from './slice-course.js';
import { Tail } from './tail.js';
import type { News } from './tellers.js';
import { toldChange } from './told-change.js';

/** What is sent in one turn of the event loop: small frames by number, large ones until so much waits for the network. */
const framesPerTurn = 8;
const turnBytesMax = 512 * 1024;
const acksLookMs = 5_000;

export class Outflow {
  readonly #parts: OutflowParts;
  readonly #options: OutflowOptions;
  readonly #to: LinkSide;
  readonly #bell = new Bell();
  readonly #claims: OutgoingClaims;
  readonly #reports: OutgoingReports;
  readonly #queue: OutflowQueue;
  readonly #courses: Courses;
  readonly #tail: Tail;
  readonly #teller: SliceTeller;
  /** Shards for which the other end has not said yet whether it has them from here. */
  readonly #unanswered: Set<ShardName>;
  #edges: Edges;
  #isTailsTurn = false;
  /** Up to where the other end was told that it has everything. */
  #told: Revision | undefined;
  /** When it was told so last. */
  #toldMs: number;
  #haveEdgesChanged = false;
  #restated = 0;
  #choices = 0;

  constructor(
    parts: OutflowParts,
    { to, edges, receiver }: Readonly<{ to: LinkSide; edges: Edges; receiver: Receiver }>,
    options: OutflowOptions,
  ) {
    const { store, history, known, isSynced, clock, random } = parts;
    this.#parts = parts;
    this.#options = options;
    this.#to = to;
    this.#edges = edges;
    const resumed = locatePosition(store, receiver.position);
    if (resumed === undefined && receiver.position !== '') parts.log.info('link.position-unknown', { to, position: receiver.position });
    const rang = (): void => this.#bell.ring();
    this.#told = resumed;
    const isWanted = ({ shard }: Key): boolean => this.#courses.hasShard(shard);
    this.#tail = new Tail({ history, revisions: store, commits: store, isWanted, rang }, resumed ?? store.published);
    this.#queue = new OutflowQueue({ clock, tooLarge: (slice, told) => this.#tooLarge(slice, told) }, receiver, options);
    this.#courses = new Courses(
      { known, isSynced, published: () => store.published, clock, random, rang },
      { to, edge: edges.towards(to), held: receiver.held, canResume: resumed !== undefined },
    );
    const progress = (): void => void this.#progress(true);
    const restate: SliceTellerParts['restate'] = (course, afterMs, reason) => this.#restate(course, afterMs, reason);
    this.#teller = new SliceTeller({ store, known, queue: this.#queue, courses: this.#courses, tail: this.#tail, progress, restate });
    if (resumed === undefined && receiver.held.some(({ edge }) => edge !== '')) this.#forgetPosition();
    this.#claims = new OutgoingClaims({ ...parts, rang }, to);
    this.#unanswered = new Set([...known.shards].filter(({ side }) => flows(side, to)).map(({ shard }) => shard));
    this.#reports = new OutgoingReports({
      ...parts,
      isComplete: () => parts.isComplete(to),
      crossesWhole: (slice) => this.#courses.edge.isWhole(slice) && this.#courses.of(slice)?.isRefused !== true,
      published: () => store.published,
      marked: this.#courses.marked,
    });
    this.#toldMs = clock.now();
    this.#answer();
  }

  /** How far it is. */
  get progress(): SendingStatus {
    const { published } = this.#parts.store;
    return { ...this.#courses.tally, behind: published - this.#tail.position, lagMs: this.#queue.lagMs, restated: this.#restated };
  }

  /** Until `signal` is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const subscription = this.#parts.store.follow(({ shards, slices }) => {
      for (const { shard } of shards) this.#claims.add(shard);
      for (const { shard } of shards) this.#courses.followShard(shard);
      for (const { slice } of slices) this.#courses.followSlice(slice);
      this.#bell.ring();
    });
    try {
      await this.#sendClaims();
      await this.#courses.open(this.#parts.turn);
      const { slices, inStep, behind } = this.progress;
      this.#parts.log.info('link.sending', { slices, inStep, behind });
      await Promise.all([this.#pump(signal), this.#checkDigests(signal), this.#watchAcks(signal)]);
    } finally {
      subscription.cancel();
      this.#claims.close();
      this.#tail.close();
      this.#courses.close();
    }
  }

  /** False: it was never sent. */
  acknowledge({ sequence, credit }: FrameOf<'ack'>): boolean {
    const isSent = this.#queue.acknowledge(sequence, credit);
    this.#bell.ring();
    return isSent;
  }

  refused({ sequence, reason, message }: FrameOf<'refuse'>): void {
    const refused = this.#queue.refused(sequence);
    if (refused?.course === undefined) return;
    refused.course.isRefused = true;
    this.#courses.marked.add(refused.course);
    const why = { reason: shown(reason), message: shown(message) };
    this.#parts.boundedLog.warn('link.refused', { ...placeOf(refused.course.slice, refused.told), ...why });
  }

  /** The other end wants a slice stated. */
  restate({ slice, reason }: FrameOf<'restate'>): void {
    const course = this.#courses.of(slice);
    if (course === undefined || course.isToBeStated) return;
    this.#restated += 1;
    this.#restate(course, course.pace.wantedMs(), shown(reason));
    this.#bell.ring();
  }

  /** The other end asks how fresh everything is. */
  report(heartbeat: number): void {
    this.#reports.ask(heartbeat);
    this.#bell.ring();
  }

  /** What the other end holds of a slice that is to be stated. */
  learnSummary(summary: FrameOf<'summary'>): void {
    this.#teller.learnSummary(summary);
    this.#bell.ring();
  }

  /** The other end has come to hold slices of a shard that is ours to tell. False: more than it may. */
  hold(held: readonly HeldSlice[]): boolean {
    this.#bell.ring();
    return this.#courses.hold(held);
  }

  /** What is whole here may have become so by what another link does not let through. */
  hear(news: News): void {
    this.#courses.hear(news);
    this.#bell.ring();
  }

  /** What the other end has chosen for a shard: whether it is to be sent from here, and what claim it knows of. Resolves once more may be told. */
  async learnChoice(claim: FrameOf<'claim'>): Promise<void> {
    const { shard } = claim;
    const afterMs = this.#courses.learnChoice(claim);
    if (afterMs > 0) this.#parts.boundedLog.info('link.restate', { shard, reason: 'it is taken from here once more', afterMs });
    this.#answer(shard);
    this.#bell.ring();
    if (!this.#courses.hasShard(shard)) return;
    this.#choices += 1;
    // A course was made for every slice of each of them.
    if (this.#choices % shardsPerTurn === 0) await this.#parts.turn();
  }

  /** What is told of the shard has changed. */
  tellClaim(shard: ShardName): void {
    this.#claims.add(shard);
    this.#bell.ring();
  }

  changeEdges(edges: Edges): void {
    this.#edges = edges;
    this.#haveEdgesChanged = true;
    this.#bell.ring();
  }

  async #pump(signal: AbortSignal): Promise<void> {
    const { connection, turn } = this.#parts;
    while (!signal.aborted) {
      const seen = this.#bell.rings;
      if (this.#haveEdgesChanged) await this.#followEdges();
      await this.#sendClaims();
      if (this.#send()) {
        await turn();
        await connection.drained();
      } else if (!this.#queue.isEmpty || !(await this.#fillUp())) await this.#bell.after(seen, signal);
      else if (this.#queue.isEmpty) await turn();
    }
  }

  /** Small frames of several slices go together. False: there is nothing to be told before something changes. */
  async #fillUp(): Promise<boolean> {
    for (let queued = -1; queued < this.#queue.length && this.#queue.isShort;) {
      queued = this.#queue.length;
      if (!(await this.#fill())) return queued > 0;
    }
    return true;
  }

  async #followEdges(): Promise<void> {
    this.#haveEdgesChanged = false;
    await this.#courses.changeEdge(this.#edges.towards(this.#to), this.#parts.turn);
    // It may hear claims now that it did not.
    this.#claims.addAll();
  }

  #send(): boolean {
    for (let sent = 0; sent < framesPerTurn; sent++) {
      const frame = this.#queue.take();
      if (frame === undefined) return sent > 0;
      this.#parts.connection.send(frame);
      if (this.#parts.connection.bufferedBytes >= turnBytesMax) return true;
    }
    return true;
  }

  #restate(course: SliceCourse, afterMs: number, reason: string): void {
    this.#parts.log.info('link.restate', { slice: formatSlice(course.slice), reason, afterMs });
    this.#courses.want(course, afterMs);
  }

  /** False: there is nothing to be told before something changes. */
  async #fill(): Promise<boolean> {
    try {
      if (this.#teller.doubt() || this.#teller.end() || this.#report()) return true;
      this.#isTailsTurn = !this.#isTailsTurn;
      if (this.#isTailsTurn && this.#tail.isBehind) return await this.#fillFromTail();
      if (await this.#teller.walk()) return true;
      if (this.#tail.isBehind) return await this.#fillFromTail();
      return this.#teller.digest() || this.#progress();
    } catch (error) {
      if (!(error instanceof Refused) || error.refusal.reason !== 'Expired') throw error;
      this.#parts.log.warn('link.behind-the-log', { to: this.#to, position: this.#tail.position, compacted: this.#parts.store.compacted });
      this.#tail.jump(this.#parts.store.published);
      this.#courses.wantAll();
      this.#forgetPosition();
      return true;
    }
  }

  async #fillFromTail(): Promise<true> {
    const { store } = this.#parts;
    const { changes } = await this.#tail.next();
    const edge = this.#courses.edge;
    const last = changes.at(-1);
    const some = changes.filter(({ key }) => this.#courses.of(key)?.isTold === true);
    // The array itself, where it can be: for the next link with this edge it is known what of it crosses.
    const told = some.length === changes.length ? changes : some;
    const crossings = told.length === 0 ? [] : await crossingChanges(told, { edge, paths: store, last });
    const byCourse = new Map<SliceCourse, Told[]>();
    for (const { change, left, came } of crossings) {
      const course = this.#courses.of(change.key);
      if (course?.isTold !== true) continue;
      course.walk?.note(change, left, came);
      const before = byCourse.get(course);
      if (before === undefined) byCourse.set(course, [toldChange(change, came)]);
      else before.push(toldChange(change, came));
    }
    // No key stands twice in them: in this order they are two frames, not one each time a delete follows on a put.
    for (const [course, items] of byCourse) this.#queue.objects(course, items.toSorted(deletesLast));
    if (this.#tail.isBehind) for (const { key } of told) this.#teller.doubtPaths(key);
    if (last?.movedPath !== undefined) await this.#teller.movePath(last.key, last.movedPath);
    if (!this.#queue.isEmpty) this.#progress(true);
    return true;
  }

  /** False: none is due, or the tail is not so far yet. */
  #report(): boolean {
    const hasLooked = this.#reports.look();
    const report = this.#reports.take(this.#tail.position);
    if (report !== undefined) this.#queue.report(report);
    return hasLooked || report !== undefined;
  }

  /** What was told is told to be all; where nothing crossed, now and then. */
  #progress(isDue = this.#parts.clock.now() - this.#toldMs >= this.#options.progressIntervalMs): boolean {
    const { position } = this.#tail;
    if (!isDue || position === this.#told) return false;
    this.#teller.doubt(Infinity);
    const text = this.#parts.store.format(position);
    this.#toldMs = this.#parts.clock.now();
    this.#told = position;
    this.#queue.position(text);
    return true;
  }

  /** No slice at the other end is in step with what it holds, nor may it take itself to be when the position goes on. */
  #forgetPosition(): void {
    this.#told = undefined;
    this.#queue.position('');
  }

  /** All that are due, before anything else is sent. */
  async #sendClaims(): Promise<void> {
    while (this.#claims.send()) await this.#parts.turn();
  }

  #answer(shard?: ShardName): void {
    if (shard !== undefined) this.#unanswered.delete(shard);
    if (this.#unanswered.size === 0) this.#reports.allKnown();
  }

  async #checkDigests(signal: AbortSignal): Promise<void> {
    for (;;) {
      await pause(this.#parts.clock, this.#options.digestIntervalMs, signal);
      if (signal.aborted) return;
      this.#teller.checkAll();
      this.#bell.ring();
    }
  }

  async #watchAcks(signal: AbortSignal): Promise<void> {
    const { clock, connection } = this.#parts;
    const acks = new AckWatch(clock, this.#options);
    while (!signal.aborted) {
      if (acks.isOverdue(this.#queue)) return connection.close('timeout', 'nothing was acknowledged for too long');
      await pause(clock, acksLookMs, signal);
    }
  }

  #tooLarge(slice: Slice, told: Told): void {
    const course = this.#courses.of(slice);
    if (course !== undefined) {
      course.isRefused = true;
      this.#courses.marked.add(course);
    }
    this.#parts.boundedLog.warn('link.too-large', placeOf(slice, told));
  }
}

function deletesLast(a: Told, b: Told): number {
  return Number(a.kind === 'delete') - Number(b.kind === 'delete');
}
