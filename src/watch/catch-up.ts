/**
 * Reads the change log for watchers that are behind. Watchers of one type at the same position form
 * a cohort. The log is read once for the whole cohort; only watchers whose scope covers a change
 * get it.
 *
 *   revision ──┬──────────┬────────────────┬──────▶
 *     cohort A ┘─────▶ B ─┘      published ┘
 *
 * W8 A cohort reads at most up to the position of the next cohort, and merges with it there. So the
 *    log between two positions is read once for all watchers at the lower one.
 * W9 A cohort waits `patienceMs` for members with long queues, then reads on without them.
 *    Such a member enters again at its own position: a slow reader delays only itself.
 *
 * In each round every cohort reads one chunk, the cohort that is furthest behind first. After each
 * time slice the event loop serves others.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { entryOf } from '../domain/base/entry-of.js';
import type { Clock } from '../domain/ports.js';
import { formatResource } from '../domain/resource.js';
import type { History, LogChunk, LogType, Revisions } from '../domain/store-port.js';
import type { Revision } from '../domain/revision.js';
import { FanOut, type Receiver } from './fan-out.js';
import type { View } from './scope-index.js';

export interface Follower extends Receiver {
  readonly request: View;
  /** Whether more bytes are queued than fit into one piece. */
  readonly hasMuch: boolean;
  onRemovedAsSlow(): void;
}

export type CatchUpParts<Member> = Readonly<{
  clock: Clock;
  history: History;
  revisions: Revisions;
  /** Takes over a member that has received everything published. */
  goLive: (member: Member) => void;
}>;

const patienceMs = 50;

class Cohort<Member extends Follower> {
  readonly type: LogType;
  readonly fanOut: FanOut<Member>;
  readonly members = new Set<Member>();
  /** Members with long queues (`hasMuch`). */
  readonly slowMembers = new Set<Member>();
  /** When the cohort reads on without the members in `slowMembers`. */
  patienceEndMs = Infinity;
  cancelPatience = (): void => {};

  constructor(type: LogType, position: Revision) {
    this.type = type;
    this.fanOut = new FanOut(position);
  }

  get position(): Revision {
    return this.fanOut.revision;
  }

  add(member: Member): void {
    this.members.add(member);
    this.fanOut.join(member.request, member);
    if (member.hasMuch) this.slowMembers.add(member);
  }

  remove(member: Member): void {
    this.members.delete(member);
    this.slowMembers.delete(member);
    this.fanOut.leave(member.request, member);
  }
}

export class CatchUp<Member extends Follower> {
  readonly #parts: CatchUpParts<Member>;
  readonly #cohortOf = new Map<Member, Cohort<Member>>();
  /** Cohorts between two chunks, by type and position: a watcher at that position may join. */
  readonly #resting = new Map<string, Map<Revision, Cohort<Member>>>();
  /** The cohorts of `#resting` that may read their next chunk. */
  readonly #ready = new Set<Cohort<Member>>();
  #isRunning = false;

  constructor(parts: CatchUpParts<Member>) {
    this.#parts = parts;
  }

  enter(member: Member, after: Revision): void {
    const { group, resource, identity } = member.request.scope;
    const type = { group, resource, identity };
    const known = this.#resting.get(formatResource(type))?.get(after);
    const cohort = known ?? new Cohort<Member>(type, after);
    cohort.add(member);
    this.#cohortOf.set(member, cohort);
    if (known === undefined) this.#rest(cohort);
  }

  /** Returns false if the member is in no cohort. */
  leave(member: Member): boolean {
    const cohort = this.#cohortOf.get(member);
    if (cohort === undefined) return false;
    this.#cohortOf.delete(member);
    cohort.remove(member);
    this.#readyIfDrained(cohort);
    return true;
  }

  /** Called once the member's queue is empty. */
  drained(member: Member): void {
    const cohort = this.#cohortOf.get(member);
    if (cohort?.slowMembers.delete(member) === true) this.#readyIfDrained(cohort);
  }

  /** Only a cohort between two chunks may read on. */
  #readyIfDrained(cohort: Cohort<Member>): void {
    if (cohort.slowMembers.size === 0 && this.#resting.get(formatResource(cohort.type))?.get(cohort.position) === cohort)
      this.#makeReady(cohort);
  }

  #makeReady(cohort: Cohort<Member>): void {
    cohort.cancelPatience();
    this.#ready.add(cohort);
    if (this.#isRunning) return;
    this.#isRunning = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    while (this.#ready.size > 0) {
      // Wait a turn, so that watchers opened in the same turn join before the first chunk is read.
      await turn();
      let isTimeUp = timeShare(this.#parts.clock);
      const round = [...this.#ready].map(({ type, position }) => ({ type: formatResource(type), position }));
      for (const { type, position } of round.toSorted((a, b) => a.position - b.position)) {
        // In the same round, another cohort may have reached this position and merged with this
        // one.
        const cohort = this.#resting.get(type)?.get(position);
        if (cohort === undefined || !this.#ready.has(cohort)) continue;
        if (isTimeUp()) {
          await turn();
          isTimeUp = timeShare(this.#parts.clock);
        }
        await this.#step(cohort, isTimeUp);
      }
    }
    this.#isRunning = false;
  }

  async #step(cohort: Cohort<Member>, isTimeUp: () => boolean): Promise<void> {
    this.#resume(cohort);
    for (const member of cohort.slowMembers) this.#leaveBehind(cohort, member);
    if (cohort.members.size === 0) return;
    if (cohort.position < this.#parts.revisions.published) {
      const chunk = await this.#read(cohort);
      if (chunk === undefined) return;
      cohort.fanOut.publish(chunk.changes, chunk.upTo);
      for (let isUp = isTimeUp; !cohort.fanOut.deliver(isUp); isUp = timeShare(this.#parts.clock)) await turn();
      for (const member of cohort.members) if (member.hasMuch) cohort.slowMembers.add(member);
    }
    if (cohort.position >= this.#parts.revisions.published) this.#goLive(cohort, isTimeUp);
    if (cohort.members.size > 0) this.#rest(cohort);
  }

  /** Undefined if the log cannot be read; every member has then received the error. */
  async #read(cohort: Cohort<Member>): Promise<LogChunk | undefined> {
    const after = cohort.position;
    try {
      return await this.#parts.history.changes(cohort.type, { after, upTo: this.#reachOf(cohort) }, (key) => cohort.fanOut.covers(key));
    } catch (fault) {
      for (const member of cohort.members) member.fallBack(after, fault);
      return undefined;
    }
  }

  /** At most up to the next cohort's position (W8). */
  #reachOf(cohort: Cohort<Member>): Revision {
    let reach = this.#parts.revisions.published;
    for (const position of this.#resting.get(formatResource(cohort.type))?.keys() ?? [])
      if (position > cohort.position && position < reach) reach = position;
    return reach;
  }

  /** Moves as many members as the time allows; the next call moves the others. */
  #goLive(cohort: Cohort<Member>, isTimeUp: () => boolean): void {
    for (const member of cohort.members) {
      cohort.remove(member);
      this.#cohortOf.delete(member);
      this.#parts.goLive(member);
      if (isTimeUp()) return;
    }
  }

  #leaveBehind(cohort: Cohort<Member>, member: Member): void {
    cohort.remove(member);
    this.#cohortOf.delete(member);
    member.onRemovedAsSlow();
  }

  /** If another cohort is at the same position, the smaller one joins the larger. */
  #rest(cohort: Cohort<Member>): void {
    const standing = entryOf(this.#resting, formatResource(cohort.type), () => new Map<Revision, Cohort<Member>>());
    const there = standing.get(cohort.position);
    const [larger, smaller] = there === undefined || there.members.size < cohort.members.size ? [cohort, there] : [there, cohort];
    for (const member of smaller?.members ?? []) {
      larger.add(member);
      this.#cohortOf.set(member, larger);
    }
    if (smaller !== undefined) {
      smaller.cancelPatience();
      this.#ready.delete(smaller);
    }
    standing.set(larger.position, larger);
    if (larger.slowMembers.size === 0) return this.#makeReady(larger);
    // Joining does not restart the wait, because one slow member and newcomers could then delay the
    // others for ever.
    const nowMs = this.#parts.clock.now();
    larger.patienceEndMs = Math.min(larger.patienceEndMs, smaller?.patienceEndMs ?? Infinity, nowMs + patienceMs);
    if (nowMs >= larger.patienceEndMs) return this.#makeReady(larger);
    // The larger cohort may have been ready before a watcher with a long queue joined.
    this.#ready.delete(larger);
    larger.cancelPatience();
    larger.cancelPatience = this.#parts.clock.after(larger.patienceEndMs - nowMs, () => this.#makeReady(larger));
  }

  #resume(cohort: Cohort<Member>): void {
    cohort.cancelPatience();
    // A member may have left or drained its queue since the round began, which made the cohort
    // ready.
    this.#ready.delete(cohort);
    cohort.patienceEndMs = Infinity;
    const type = formatResource(cohort.type);
    const standing = this.#resting.get(type);
    standing?.delete(cohort.position);
    if (standing?.size === 0) this.#resting.delete(type);
  }
}

const shareMs = 5;

/**
 * Starts a time slice within one turn of the event loop; the returned function says whether the
 * slice is over.
 */
export function timeShare(clock: Clock): () => boolean {
  const endMs = clock.now() + shareMs;
  return () => clock.now() >= endMs;
}
