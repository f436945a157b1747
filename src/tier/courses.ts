/**
 * All slices on their way over a link: which there are, which are to be stated, and which may be due for their `end`.
 *
 *   the other end has the shard from here       a course for every slice that the edge covers, or that the other end holds
 *   … and is in step with it                    it goes on from the link's position; otherwise it is stated
 *   it has it from elsewhere, or does not know  no course
 *
 * Y1 A slice that the edge does not cover any more is stated as empty, so that the other end lets go of it.
 * Bound: one course per slice that crosses, and `heldMax` that the other end says it holds and nobody knows here.
 */
import type { Clock } from '../domain/ports.js';
import type { LinkSide } from '../domain/side.js';
import type { Incarnation } from '../domain/push.js';
import type { Revision } from '../domain/revision.js';
import type { ShardName } from '../domain/shard.js';
import { formatSlice, isSameSlice, type Slice } from '../domain/slice.js';
import type { FrameOf, HeldSlice } from '../frames/frame.js';
import { RestatePace } from '../sender/restate-pace.js';
import type { Edge } from './edge.js';
import type { KnownShards } from '../intake/known-shards.js';
import { SliceCourse, type CourseTally } from './slice-course.js';
import { TakenShards } from './taken-shards.js';
import type { News } from './tellers.js';
import { WaitingCourses } from './waiting-courses.js';

export type CoursesParts = Readonly<{
  known: KnownShards;
  /** Whether all of a slice is here, if anything of it ever comes here. */
  isSynced: (slice: Slice) => boolean;
  published: () => Revision;
  clock: Clock;
  random: () => number;
  rang: () => void;
}>;

/** It was whole at the revision `from`, for this incarnation. */
type Ripening = Readonly<{ course: SliceCourse; incarnation: Incarnation; from: Revision }>;

/** Looked at in one turn of the event loop: of a shard some twenty slices, each some tens of microseconds the first time. */
export const shardsPerTurn = 8;
/** Slices that the other end may say it holds. */
export const heldMax = 200_000;

export class Courses {
  readonly #parts: CoursesParts;
  readonly #taken: TakenShards;
  /** Of shards that the other end has chosen to have from here: it may say so as often as it likes. */
  readonly #paces = new Map<ShardName, RestatePace>();
  readonly #byShard = new Map<ShardName, Map<string, SliceCourse>>();
  /** What the other end holds, until it is on its way or the shard is not ours to tell. */
  readonly #held = new Map<ShardName, Map<string, HeldSlice>>();
  /** Told of since the opening, and not known here: what is told again as its shard comes and goes counts once. */
  readonly #foreign = new Set<string>();
  readonly #waiting = new WaitingCourses();
  readonly #due = new Set<SliceCourse>();
  /** In the order in which they were found to be whole. */
  readonly #ripening: Ripening[] = [];
  readonly #doubts = new Set<SliceCourse>();
  /** How many there are, how many of them the other end is in step with, and of how many it did not take something. */
  readonly tally: CourseTally = { slices: 0, inStep: 0, refused: 0 };
  /** Those whose freshness is to be looked at: they are new, or it may have changed. Whoever looks at one takes it out. */
  readonly marked = new Set<SliceCourse>();
  /** At the opening alone: later the link's position has moved on without what was no course yet. */
  #canResume: boolean;
  /** Asked for last, while it is one of them. */
  #last: SliceCourse | undefined;
  #edge: Edge;

  constructor(
    parts: CoursesParts,
    { to, edge, held, canResume }: Readonly<{ to: LinkSide; edge: Edge; held: readonly HeldSlice[]; canResume: boolean }>,
  ) {
    this.#parts = parts;
    this.#taken = new TakenShards(parts.known, to, held);
    this.#edge = edge;
    this.#canResume = canResume;
    for (const each of held) this.#noteHeld(each);
  }

  /** Takes up all that is known, giving the event loop back between shards. Nothing is told before. */
  async open(turn: () => Promise<void>): Promise<void> {
    await this.#followAll(turn);
    this.#canResume = false;
  }

  /** The other end holds these. False: of more than it may, nothing is known here. */
  hold(held: readonly HeldSlice[]): boolean {
    for (const each of held) {
      this.#noteHeld(each);
      this.followSlice(each.slice);
      if (this.#parts.known.slice(each.slice) === undefined) this.#foreign.add(formatSlice(each.slice));
    }
    return this.#foreign.size <= heldMax;
  }

  /** The other end has chosen where it has a shard from. Answers for how long what it takes from here has to wait. */
  learnChoice(claim: FrameOf<'claim'>): number {
    const { shard, isYours } = claim;
    const hadIt = this.#taken.has(shard);
    this.#taken.learnChoice(claim);
    if (!isYours) this.#held.delete(shard);
    this.followShard(shard);
    if (hadIt || !this.#taken.has(shard)) return 0;
    const pace = this.#paces.get(shard) ?? new RestatePace(this.#parts);
    this.#paces.set(shard, pace);
    const afterMs = pace.wantedMs();
    pace.stated();
    if (afterMs > 0) for (const course of this.ofShard(shard)) this.want(course, afterMs);
    return afterMs;
  }

  get edge(): Edge {
    return this.#edge;
  }

  get all(): Iterable<SliceCourse> {
    return this.#each();
  }

  /** Changes come slice by slice as a rule. */
  of(slice: Slice): SliceCourse | undefined {
    const last = this.#last;
    if (last !== undefined && isSameSlice(last.slice, slice)) return last;
    return (this.#last = this.#byShard.get(slice.shard)?.get(formatSlice(slice)));
  }

  hasShard(shard: ShardName): boolean {
    return this.#byShard.has(shard);
  }

  ofShard(shard: ShardName): Iterable<SliceCourse> {
    return this.#byShard.get(shard)?.values() ?? [];
  }

  /** The next one to be stated, which is taken; undefined when none may be (waiting-courses.ts). */
  takeWaiting(position: Revision, of?: 'declaring'): SliceCourse | undefined {
    const course = this.#waiting.take(position, of);
    // Its own `begin` comes now.
    if (course !== undefined) this.#doubts.delete(course);
    return course;
  }

  /**
   * One whose `end` is to be given now, with the claim it is given for: what made it whole was published when it was first seen to be, and
   * everything up to there is told, `position` being how far that is.
   */
  takeDue(position: Revision): Ripening | undefined {
    for (const course of this.#due) this.#ripen(course);
    this.#due.clear();
    for (let first = this.#ripening[0]; first !== undefined && first.from <= position; first = this.#ripening[0]) {
      this.#ripening.shift();
      const { course, incarnation } = first;
      course.isRipening = false;
      if (this.of(course.slice) !== course || !this.#wantsEnd(course)) continue;
      if (this.#incarnationOf(course) === incarnation) return first;
      this.#ripen(course);
    }
    return undefined;
  }

  /** Some that the other end must be told are out of step, before it is told how far this end is: changes of them may have been passed over. */
  takeDoubts(max: number): readonly SliceCourse[] {
    const taken = [...this.#doubts].slice(0, max);
    for (const course of taken) this.#doubts.delete(course);
    return taken;
  }

  mayBeDue(course: SliceCourse): void {
    this.#due.add(course);
  }

  /** Who tells of these here has come, gone or told something; what is whole here may have become so, or not. */
  hear({ shards, slices }: News): void {
    for (const shard of shards) for (const course of this.ofShard(shard)) this.#changed(course);
    for (const slice of slices) {
      const course = this.of(slice);
      if (course !== undefined) this.marked.add(course);
    }
  }

  /** The slice is to be stated, after a while. */
  want(course: SliceCourse, afterMs = 0): void {
    if (course.phase === 'in step') this.#doubts.add(course);
    course.close();
    course.step('wanted');
    this.#leaveSets(course);
    if (afterMs === 0) return this.#wait(course);
    course.delay(
      this.#parts.clock.after(afterMs, () => {
        this.#wait(course);
        this.#parts.rang();
      }),
    );
  }

  /** All that are told are to be stated: the log does not reach back to where the link is. The other end is told so of all at once. */
  wantAll(): void {
    for (const course of this.#each()) if (!course.isToBeStated) this.want(course);
    this.#doubts.clear();
  }

  /** The policies have changed: what concerns a slice may have, and then it is stated anew. Nothing is told before that is known of all. */
  async changeEdge(edge: Edge, turn: () => Promise<void>): Promise<void> {
    this.#edge = edge;
    for (const ofShard of this.#byShard.values()) {
      for (const course of ofShard.values()) {
        const hash = edge.hashOf(course.slice);
        if (hash === course.edge) continue;
        course.edge = hash;
        this.want(course);
        this.marked.add(course);
      }
      await turn();
    }
    await this.#followAll(turn);
  }

  /** Something has changed of the shard. */
  followShard(shard: ShardName): void {
    const { known } = this.#parts;
    if (!this.#taken.has(shard)) return this.#dropShard(shard);
    for (const resource of known.resourcesOf(shard)) this.followSlice({ shard, resource });
    for (const { slice } of this.#held.get(shard)?.values() ?? []) this.followSlice(slice);
    for (const course of this.ofShard(shard)) this.#changed(course);
  }

  /** Something has changed of the slice; where nobody states slices, what is so of one may end all of its shard (known-shards.ts). */
  followSlice(slice: Slice): void {
    const course = this.of(slice) ?? this.#add(slice);
    if (course !== undefined) this.#changed(course);
    if (this.#parts.known.shard(slice.shard)?.plain === true) for (const each of this.ofShard(slice.shard)) this.#changed(each);
  }

  close(): void {
    for (const course of this.#each()) course.leave();
    this.#byShard.clear();
    this.#last = undefined;
    this.marked.clear();
    this.#due.clear();
    this.#waiting.clear();
  }

  async #followAll(turn: () => Promise<void>): Promise<void> {
    let shards = 0;
    for (const { shard } of this.#parts.known.shards) {
      this.followShard(shard);
      shards += 1;
      if (shards % shardsPerTurn === 0) await turn();
    }
  }

  /** Whether it is whole here may have changed. */
  #changed(course: SliceCourse): void {
    this.#due.add(course);
    this.marked.add(course);
  }

  #noteHeld(held: HeldSlice): void {
    const { shard } = held.slice;
    this.#held.set(shard, (this.#held.get(shard) ?? new Map<string, HeldSlice>()).set(formatSlice(held.slice), held));
  }

  #add(slice: Slice): SliceCourse | undefined {
    const { clock, random } = this.#parts;
    if (!this.#taken.has(slice.shard)) return undefined;
    const held = this.#held.get(slice.shard)?.get(formatSlice(slice));
    if (held === undefined && !this.#edge.covers(slice)) return undefined;
    const edge = this.#edge.hashOf(slice);
    const isInStep = this.#canResume && held?.edge === edge;
    const phase = isInStep ? 'in step' : held === undefined ? 'new' : 'waiting';
    const course = new SliceCourse(slice, { edge, phase, pace: new RestatePace({ clock, random }), tally: this.tally });
    if (isInStep) course.endedFor = held.stated;
    else this.#wait(course);
    if (!isInStep && this.#canResume && held !== undefined && held.edge !== '') this.#doubts.add(course);
    this.#held.get(slice.shard)?.delete(formatSlice(slice));
    const ofShard = this.#byShard.get(slice.shard) ?? new Map<string, SliceCourse>();
    this.#byShard.set(slice.shard, ofShard.set(formatSlice(slice), course));
    return course;
  }

  #ripen(course: SliceCourse): void {
    if (course.isRipening || !this.#wantsEnd(course)) return;
    course.isRipening = true;
    this.#ripening.push({ course, incarnation: this.#incarnationOf(course), from: this.#parts.published() });
  }

  #wantsEnd(course: SliceCourse): boolean {
    const isNew = course.endedFor !== this.#incarnationOf(course);
    if (course.phase !== 'told' && !(course.phase === 'in step' && isNew)) return false;
    // For another claim than the other end knows of it would be given in vain.
    return this.#taken.isAgreed(course.slice.shard) && this.#parts.isSynced(course.slice);
  }

  #incarnationOf({ slice }: SliceCourse): Incarnation {
    return this.#parts.known.shard(slice.shard)?.incarnation ?? 0;
  }

  #wait(course: SliceCourse): void {
    this.#waiting.add(course, this.#parts.published());
  }

  #dropShard(shard: ShardName): void {
    for (const course of this.ofShard(shard)) {
      course.leave();
      this.#leaveSets(course);
      this.#doubts.delete(course);
      this.marked.delete(course);
    }
    this.#byShard.delete(shard);
    this.#last = undefined;
  }

  #leaveSets(course: SliceCourse): void {
    this.#due.delete(course);
    this.#waiting.delete(course);
  }

  *#each(): Iterable<SliceCourse> {
    for (const ofShard of this.#byShard.values()) yield* ofShard.values();
  }
}
