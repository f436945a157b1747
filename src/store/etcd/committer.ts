/**
 * Sends the decider's writes to etcd, and decides again when etcd rejects one. Many transactions
 * are under way at once, because each waits for the disks of a majority of members. A request that
 * depends on an earlier one waits for that one.
 *
 *   a lane     upsert a ─┐ upsert b ─┐ keep c ─┐        keys do not wait for each other
 *              end ──────┴───────────┴─────────┴─▶      waits for all before, blocks all after
 *              upsert d …
 *
 * M1 The committer returns a decision only once its write is published here, so later reads at this
 *    server see the write.
 * M2 If etcd does not answer a transaction, this server renews its fence (peers.ts). After the
 *    renewal, the transaction is either applied and published here, or can never be applied. Until
 *    then, the committer sends nothing. If the renewal does not succeed in time, the write fails
 *    with an error of the kind `unknown`.
 * M3 etcd may reject a transaction although all that the transaction compares is published
 *    unchanged. If that happens `contradictionsMax` times in a row, etcd has lost data.
 * M4 If one push of a lane fails, the committer plans no other push of that call, neither for the
 *    first time nor again. Otherwise etcd could apply such a write after the writes of the shard's
 *    next speaker.
 */
import assert from 'node:assert/strict';
import type { Change } from '../../domain/change.js';
import { formatKey, type Key } from '../../domain/key.js';
import type { Mutation } from '../../domain/mutation.js';
import type { StoredObject } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';
import { scopeOfSlice } from '../../domain/scope.js';
import { sweepDeletesMax, type BatchItem } from '../batch-item.js';
import type { Walk } from '../syncs.js';
import type { BodyReader } from './body-reader.js';
import type { EtcdClient } from './client.js';
import type { Decider } from './decider.js';
import { EtcdError } from './etcd-error.js';
import type { IndexedObject } from './object-reader.js';
import type { Decision, Plan, PushOf } from './plan.js';
import type { Compare } from './rpc.js';
import type { PublishedState } from './published-state.js';
import { WriteFence, type WriteFenceParts } from './write-fence.js';

export type CommitterParts = WriteFenceParts &
  Readonly<{
    client: EtcdClient;
    decider: Decider;
    published: PublishedState;
    reader: BodyReader;
    /** Resolves once everything up to the revision is published here. */
    reach: (revision: Revision) => Promise<void>;
    /**
     * Resolves once everything that etcd held at the time of the call is published here. Throws
     * EtcdError.
     */
    reachNewest: () => Promise<void>;
    /** Reports that etcd has lost something that is published here. */
    contradicted: () => void;
    /** The changes of a key above a revision, ascending, as far back as history reaches. */
    changesOf: (key: Key, after: Revision) => Iterable<Change>;
  }>;

/**
 * `writeMsMax`: the time for one write, however often it is sent. `answerMsMax`: the time for one
 * answer. etcd elects a new leader in less time, and then never answers requests that the former
 * leader received. If etcd is only slow, renewing the fence shows the outcome (M2).
 */
export type CommitterOptions = Readonly<{
  transactionsMax: number;
  writeMsMax: number;
  answerMsMax: number;
  contradictionsMax: number;
}>;

const committerOptions: CommitterOptions = Object.freeze({
  transactionsMax: 128,
  writeMsMax: 15_000,
  answerMsMax: 2_000,
  contradictionsMax: 50,
});

/** `object`: the new state; for a delete, the last state. */
export type Mutated = Extract<Decision, { kind: 'refused' }> | Readonly<{ kind: 'written'; revision: Revision; object: StoredObject }>;

/** `first`: the plan, if the caller has already made it. */
type CarryOut = Readonly<{ mutation?: Mutation; first?: Plan }>;

type WritePlan = Extract<Plan, { kind: 'write' }>;

/**
 * The deadline of one write, however often it is planned and sent. The time begins when the write
 * gets its first slot.
 */
type Deadline = { untilMs?: number };

/** Objects that one step of a walk may examine. */
const sweepKeysMax = 2_000;

export class EtcdCommitter {
  readonly #parts: CommitterParts;
  readonly #options: CommitterOptions;
  /** The last unfinished request for each key, keyed by the text of the key. */
  readonly #underWay = new Map<string, Promise<unknown>>();
  readonly #slots: TransactionSlots;
  readonly #fence: WriteFence;
  /** Rejections in a row that no published change explains (M3). */
  #contradictions = 0;

  constructor(parts: CommitterParts, options: CommitterOptions = committerOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#slots = new TransactionSlots(options.transactionsMax);
    this.#fence = new WriteFence(parts);
  }

  /** Throws EtcdError. Kind `unknown`: the write may have been applied, or may yet be. */
  mutate(mutation: Mutation): Promise<Mutated> {
    return this.#inTurn(mutation.key, async () => {
      let held: IndexedObject | undefined;
      const plan = (): Plan => {
        held = this.#parts.published.objects.get(mutation.key);
        return this.#parts.decider.plan(mutation);
      };
      let decision = await this.#carryOut(plan, { mutation });
      if (decision.kind === 'refused') {
        await this.#reachNewest();
        decision = await this.#carryOut(plan, { mutation });
      }
      if (decision.kind === 'refused') return decision;
      assert(decision.kind === 'written', 'a mutation is written or refused');
      return { ...decision, object: await this.#objectOf(mutation, decision.revision, held) };
    });
  }

  /**
   * Decides the pushes of one lane in order. `isFollowed`: more pushes of the lane follow in the
   * batch. Throws EtcdError; then the outcome of all these pushes is unknown.
   */
  async push(asked: readonly BatchItem[], isFollowed: boolean): Promise<readonly Decision[]> {
    const failed = new AbortController();
    try {
      return await this.#push(asked, isFollowed, failed.signal);
    } catch (error) {
      failed.abort();
      throw error;
    }
  }

  async #push(asked: readonly BatchItem[], isFollowed: boolean, failed: AbortSignal): Promise<readonly Decision[]> {
    const decisions: (Decision | Promise<Decision>)[] = [];
    let flying: Promise<Decision>[] = [];
    for (const [i, each] of asked.entries()) {
      const plan = (): Plan => {
        if (failed.aborted) throw new EtcdError('refused', 'another push of the same sender failed');
        return this.#parts.decider.plan(each);
      };
      if (!('key' in each)) {
        await Promise.all(flying);
        flying = [];
        const isLast = i === asked.length - 1 && !isFollowed;
        decisions.push(each.kind === 'end' && !isLast ? await this.#toItsEnd(each) : await this.#carryOut(plan));
        continue;
      }
      const decision = this.#atOnce(each.key, plan);
      if (decision instanceof Promise) flying.push(decision);
      decisions.push(decision);
    }
    return Promise.all(decisions);
  }

  /**
   * Carries out an `end` until nothing is left to remove, because the items behind it in the batch
   * rely on that (lane.ts).
   */
  async #toItsEnd(end: PushOf<'end'>): Promise<Decision> {
    const { decider } = this.#parts;
    let decision = await this.#carryOut(() => decider.plan(end));
    let removed = 0;
    while (decision.kind === 'partial') {
      removed += decision.removed;
      const resume: BatchItem = { kind: 'resume', push: end, walk: decision.walk };
      decision = await this.#carryOut(() => decider.plan(resume));
    }
    return decision.kind === 'swept' ? { ...decision, removed: removed + decision.removed } : decision;
  }

  /**
   * Catches up with etcd before a mutation is refused for good: a change that another server has
   * acknowledged may make it valid. Throws EtcdError of the kind `refused`: nothing was written.
   */
  async #reachNewest(): Promise<void> {
    try {
      await this.#parts.reachNewest();
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      throw new EtcdError('refused', error.message, { cause: error });
    }
  }

  /** Writes the surviving namesake of a deleted object again, if still needed. */
  async rewrite(mark: string): Promise<void> {
    const { decider, published, reader } = this.#parts;
    for (;;) {
      const survivor = decider.newestNamesake(mark);
      const [object] = survivor === undefined ? [] : await reader.read([survivor], published.revision);
      const plan = decider.planRewrite(mark, survivor, object?.body);
      if (plan.kind !== 'write') return;
      const revision = await this.#write(plan, undefined);
      if (revision !== undefined) return this.#parts.reach(revision);
    }
  }

  /** Decides synchronously if nothing must be written and the key has no request under way. */
  #atOnce(key: Key, plan: () => Plan): Decision | Promise<Decision> {
    if (this.#underWay.has(formatKey(key))) return this.#inTurn(key, () => this.#carryOut(plan));
    const first = plan();
    return first.kind === 'decided' ? first.decision : this.#inTurn(key, () => this.#carryOut(plan, { first }));
  }

  /** Runs after the earlier requests for the key. */
  #inTurn<T>(key: Key, run: () => Promise<T>): Promise<T> {
    const text = formatKey(key);
    const before = this.#underWay.get(text);
    const done = before === undefined ? run() : before.then(run, run);
    this.#underWay.set(text, done);
    const leave = (): void => {
      if (this.#underWay.get(text) === done) this.#underWay.delete(text);
    };
    done.then(leave, leave);
    return done;
  }

  async #carryOut(plan: () => Plan, { mutation, first = plan() }: CarryOut = {}): Promise<Decision> {
    let deadline: Deadline = {};
    for (let current = first; ;) {
      if (current.kind === 'decided') return current.decision;
      if (current.kind === 'sweep') {
        current = await this.#sweep(current);
        continue;
      }
      const revision = await this.#write(current, mutation, deadline);
      if (revision === undefined) {
        if (this.#parts.clock.now() >= (deadline.untilMs ?? Infinity))
          throw new EtcdError('refused', `it was not applied within ${this.#options.writeMsMax / 1000} s`);
        current = current.otherwise?.() ?? plan();
        continue;
      }
      deadline = {};
      await this.#parts.reach(revision);
      if (current.deletes !== undefined && this.#parts.published.needsRewrite(current.deletes)) await this.rewrite(current.deletes);
      current = current.next(revision);
    }
  }

  async #sweep({ walk, by, next }: Extract<Plan, { kind: 'sweep' }>): Promise<Plan> {
    const keys = this.#unmarked(walk);
    const { decider } = this.#parts;
    const removed = Promise.all(keys.map((key) => this.#inTurn(key, () => this.#carryOut(() => decider.planRemoval(key, walk, by)))));
    const decisions = await removed.catch((error: unknown) => {
      decider.abandon(walk);
      throw error;
    });
    const isFenced = decisions.some(({ kind }) => kind === 'fenced');
    return next(decisions.filter(({ kind }) => kind === 'written').length, isFenced);
  }

  #unmarked(walk: Walk): readonly Key[] {
    const found: Key[] = [];
    let examined = 0;
    for (let current = walk.slices[0]; current !== undefined; current = walk.slices[0]) {
      const [cluster, namespace, name] = walk.after;
      const after = name === '' ? undefined : ({ ...current.slice, cluster, namespace, name } as Key);
      const scope = { ...scopeOfSlice(current.slice), cluster: walk.cluster === '' ? ('*' as const) : walk.cluster };
      for (const { key, revision } of this.#parts.published.objects.scan(scope, after)) {
        if (examined === sweepKeysMax || found.length === sweepDeletesMax) return found;
        examined += 1;
        walk.after = [key.cluster, key.namespace, key.name];
        if (walk.marks.isUnmarked(revision) && walk.mayRemove(key)) found.push(key);
      }
      walk.slices.shift();
      walk.after = ['', '', ''];
    }
    return found;
  }

  /** The revision of the write; undefined if something that the decision rests on changed. */
  async #write({ compare, operations }: WritePlan, mutation: Mutation | undefined, deadline: Deadline = {}): Promise<Revision | undefined> {
    const { published, clock } = this.#parts;
    await this.#slots.acquire();
    const untilMs = (deadline.untilMs ??= clock.now() + this.#options.writeMsMax);
    // If etcd applies the transaction, the transaction's revision is above this one.
    let before = published.revision;
    try {
      const fence = await this.#fence.present(untilMs, 'refused');
      const asked = { compare: [...compare, fence], success: operations, failure: [] };
      before = published.revision;
      const { succeeded, revision } = await this.#parts.client.txn(asked, this.#options.answerMsMax);
      this.#slots.answered();
      if (succeeded) {
        this.#contradictions = 0;
        return revision;
      }
      await this.#parts.reach(revision);
      this.#recordRefusal(asked.compare);
      return undefined;
    } catch (error) {
      if (!(error instanceof EtcdError) || error.kind !== 'unknown') throw error;
      this.#slots.unanswered();
      this.#fence.recordUnanswered();
      await this.#fence.present(untilMs, 'unknown');
      return mutation && this.#seen(mutation, before);
    } finally {
      this.#slots.release();
    }
  }

  /**
   * Counts rejections that nothing published explains (M3). Changes by other servers and a renewed
   * fence explain any number of them.
   */
  #recordRefusal(compare: readonly Compare[]): void {
    const { published, contradicted } = this.#parts;
    this.#contradictions = compare.every(({ key, revision }) => published.revisionAt(key) === revision) ? this.#contradictions + 1 : 0;
    if (this.#contradictions < this.#options.contradictionsMax) return;
    contradicted();
    throw new EtcdError('refused', 'etcd has lost changes that this server has published');
  }

  /**
   * After an unanswered transaction: the revision above `decidedOn` at which etcd applied the
   * mutation; undefined if it did not.
   */
  #seen(mutation: Mutation, decidedOn: Revision): Revision | undefined {
    for (const change of this.#parts.changesOf(mutation.key, decidedOn)) {
      if (change.kind !== mutation.kind) continue;
      if (change.kind === 'delete' || mutation.kind === 'delete') return change.revision;
      if (Buffer.compare(change.object.body.bytes, mutation.body.bytes) === 0) return change.revision;
    }
    return undefined;
  }

  /** The new object, or the deleted one, which is usually in history, else read from etcd. */
  async #objectOf(mutation: Mutation, revision: Revision, held: IndexedObject | undefined): Promise<StoredObject> {
    const { key } = mutation;
    if (mutation.kind === 'put') return { key, revision, resourceVersion: String(revision), body: mutation.body };
    for (const change of this.#parts.changesOf(key, revision - 1)) {
      const deleted = change.kind === 'delete' ? change.previous() : undefined;
      if (deleted !== undefined) return deleted;
      break;
    }
    assert(held !== undefined, 'what was deleted was there');
    const [object] = await this.#parts.reader.read([held], revision - 1);
    assert(object !== undefined, 'a reader reads all or throws');
    return object;
  }
}

/**
 * Limits how many transactions are under way at once. The limit halves after a transaction that
 * etcd did not answer in time, and rises by one with each answer. So the limit soon falls to what
 * the network and the disks can handle in time.
 */
class TransactionSlots {
  readonly #max: number;
  readonly #waiting: (() => void)[] = [];
  #limit: number;
  #acquired = 0;

  constructor(max: number) {
    this.#max = max;
    this.#limit = max;
  }

  /** Resolves when a slot is free. The caller returns the slot with `release`. */
  async acquire(): Promise<void> {
    if (this.#acquired < this.#limit) this.#acquired += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  release(): void {
    this.#acquired -= 1;
    for (let next; this.#acquired < this.#limit && (next = this.#waiting.shift()) !== undefined; this.#acquired += 1) next();
  }

  answered(): void {
    this.#limit = Math.min(this.#max, this.#limit + 1);
  }

  unanswered(): void {
    this.#limit = Math.max(1, Math.floor(this.#limit / 2));
  }
}
