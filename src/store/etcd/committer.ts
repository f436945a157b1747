/**
 * Writes to etcd what the decider says, and decides again where etcd says no. Many transactions are under way at once, because each waits for the disks of
 * most members; what depends on something earlier waits for it.
 *
 *   a lane     upsert a ─┐ upsert b ─┐ keep c ─┐        each key by itself, in any order
 *              end ──────┴───────────┴─────────┴─▶      waits for all before it, and what follows waits for it
 *              upsert d …
 *
 * M1 A decision is given out once it is published here: whoever reads here afterwards sees it.
 * M2 Where etcd has not answered, the fence of this server is renewed (peers.ts): the transaction was done by then, which is published, or never will be. Nothing is sent
 *    before that. If it cannot be renewed, the outcome is unknown, and is said to be.
 * M3 What etcd says no to although all that was compared is published as it was, again and again, is not what etcd holds: it has lost something.
 * M4 Where one push of a lane fails, none beside it is decided any more, nor again: whoever speaks for the shard next must not find them behind what it says.
 */
import assert from 'node:assert/strict';
import type { Change } from '../../domain/change.js';
import { formatClientKey, type Key } from '../../domain/key.js';
import type { Mutation } from '../../domain/mutation.js';
import type { StoredObject } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';
import { scopeOfSlice } from '../../domain/scope.js';
import { sweepDeletesMax, type Asked } from '../asked.js';
import type { Walk } from '../syncs.js';
import type { BodyReader } from './body-reader.js';
import type { EtcdClient } from './client.js';
import type { Decider } from './decider.js';
import { EtcdError } from './etcd-error.js';
import type { IndexedObject } from './object-reader.js';
import type { Decision, Plan, PushOf } from './plan.js';
import type { Compare } from './rpc.js';
import type { PublishedState } from './published-state.js';
import { TransactionSlots } from './transaction-slots.js';
import { WriteFence, type WriteFenceParts } from './write-fence.js';

export type CommitterParts = WriteFenceParts &
  Readonly<{
    client: EtcdClient;
    decider: Decider;
    published: PublishedState;
    reader: BodyReader;
    /** Resolves once everything up to the revision is published here. */
    reach: (revision: Revision) => Promise<void>;
    /** Resolves once everything is published here that had happened when it was called. Throws EtcdError. */
    reachNewest: () => Promise<void>;
    /** etcd has lost what is published here. */
    contradicted: () => void;
    /** The changes of a key behind a revision, rising, as far back as history goes. */
    changesOf: (key: Key, after: Revision) => Iterable<Change>;
  }>;

/** `writeMsMax`: of one write, however often it is sent. `answerMsMax`: a new leader of etcd is there sooner, and does not know of what the former was asked. Where etcd is slower, the fence shows what became of it. */
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

/** What became of a mutation; `object`: the new state, or the last one of what was deleted. */
export type Mutated = Extract<Decision, { kind: 'refused' }> | Readonly<{ kind: 'written'; revision: Revision; object: StoredObject }>;

/** `first`: what was planned already. */
type CarryOut = Readonly<{ mutation?: Mutation; first?: Plan }>;

type WritePlan = Extract<Plan, { kind: 'write' }>;

/** Of one write, however often it is planned and sent: from its first turn on. */
type Deadline = { untilMs?: number };

/** Objects that a step of a walk looks at. */
const sweepLooksMax = 2_000;

export class EtcdCommitter {
  readonly #parts: CommitterParts;
  readonly #options: CommitterOptions;
  /** By the text of a key: the last that was asked of it, until it is published. */
  readonly #underWay = new Map<string, Promise<unknown>>();
  readonly #slots: TransactionSlots;
  readonly #fence: WriteFence;
  /** How many refusals in a row had no reason that is published. */
  #contradictions = 0;

  constructor(parts: CommitterParts, options: CommitterOptions = committerOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#slots = new TransactionSlots(options.transactionsMax);
    this.#fence = new WriteFence(parts);
  }

  /** Throws EtcdError: of the kind `unknown` if it may have been written, or may yet be. */
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

  /** Decides in order what one lane asks; `isFollowed`: it asks more behind that. Throws EtcdError; then nothing is known of any of them. */
  async push(asked: readonly Asked[], isFollowed: boolean): Promise<readonly Decision[]> {
    const failed = new AbortController();
    try {
      return await this.#push(asked, isFollowed, failed.signal);
    } catch (error) {
      failed.abort();
      throw error;
    }
  }

  async #push(asked: readonly Asked[], isFollowed: boolean, failed: AbortSignal): Promise<readonly Decision[]> {
    const decisions: (Decision | Promise<Decision>)[] = [];
    let flying: Promise<Decision>[] = [];
    for (const [i, each] of asked.entries()) {
      const plan = (): Plan => {
        if (failed.aborted) throw new EtcdError('refused', 'another push of its lane has failed');
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

  /** What follows an end in a batch builds on it (lane.ts), however much the slice has come to hold since the batch was made. */
  async #toItsEnd(end: PushOf<'end'>): Promise<Decision> {
    const { decider } = this.#parts;
    let decision = await this.#carryOut(() => decider.plan(end));
    let removed = 0;
    while (decision.kind === 'partial') {
      removed += decision.removed;
      const resume: Asked = { kind: 'resume', push: end, walk: decision.walk };
      decision = await this.#carryOut(() => decider.plan(resume));
    }
    return decision.kind === 'swept' ? { ...decision, removed: removed + decision.removed } : decision;
  }

  /** Nothing is refused for what another server has changed, and acknowledged, before it was asked. Throws EtcdError: nothing was written. */
  async #reachNewest(): Promise<void> {
    try {
      await this.#parts.reachNewest();
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
      throw new EtcdError('refused', error.message, { cause: error });
    }
  }

  /** Writes a namesake of what was deleted again, if that is still to be done. */
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

  /** What is decided without writing is decided now. */
  #atOnce(key: Key, plan: () => Plan): Decision | Promise<Decision> {
    if (this.#underWay.has(textOf(key))) return this.#inTurn(key, () => this.#carryOut(plan));
    const first = plan();
    return first.kind === 'decided' ? first.decision : this.#inTurn(key, () => this.#carryOut(plan, { first }));
  }

  /** After whatever else is asked of the key. */
  #inTurn<T>(key: Key, run: () => Promise<T>): Promise<T> {
    const text = textOf(key);
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
        if (this.#parts.clock.now() >= (deadline.untilMs ?? Infinity)) throw new EtcdError('refused', 'it does not take this one in time');
        current = current.otherwise?.() ?? plan();
        continue;
      }
      deadline = {};
      await this.#parts.reach(revision);
      if (current.deletes !== undefined && this.#parts.published.owesRewrite(current.deletes)) await this.rewrite(current.deletes);
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

  /** The next objects of a walk that have no mark. */
  #unmarked(walk: Walk): readonly Key[] {
    const found: Key[] = [];
    let looked = 0;
    for (let current = walk.slices[0]; current !== undefined; current = walk.slices[0]) {
      const [cluster, namespace, name] = walk.after;
      const after = name === '' ? undefined : ({ ...current.slice, cluster, namespace, name } as Key);
      const scope = { ...scopeOfSlice(current.slice), cluster: walk.cluster === '' ? ('*' as const) : walk.cluster };
      for (const { key, revision } of this.#parts.published.objects.look(scope, after)) {
        if (looked === sweepLooksMax || found.length === sweepDeletesMax) return found;
        looked += 1;
        walk.after = [key.cluster, key.namespace, key.name];
        if (walk.marks.isUnmarked(revision) && walk.covers(key)) found.push(key);
      }
      walk.slices.shift();
      walk.after = ['', '', ''];
    }
    return found;
  }

  /** The revision at which it was written; undefined where what it was decided on does not hold any more. */
  async #write({ compare, operations }: WritePlan, mutation: Mutation | undefined, deadline: Deadline = {}): Promise<Revision | undefined> {
    const { published, clock } = this.#parts;
    await this.#slots.take();
    const untilMs = (deadline.untilMs ??= clock.now() + this.#options.writeMsMax);
    // Whatever becomes of it has a later revision.
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
      this.#noteRefusal(asked.compare);
      return undefined;
    } catch (error) {
      if (!(error instanceof EtcdError) || error.kind !== 'unknown') throw error;
      this.#slots.unanswered();
      this.#fence.noteUnanswered();
      await this.#fence.present(untilMs, 'unknown');
      return mutation && this.#seen(mutation, before);
    } finally {
      this.#slots.give();
    }
  }

  /** Others may change what was compared any number of times, and the fence is renewed; but where it is published as it was, again and again, etcd holds something else. */
  #noteRefusal(compare: readonly Compare[]): void {
    const { published, contradicted } = this.#parts;
    this.#contradictions = compare.every(({ key, revision }) => published.revisionAt(key) === revision) ? this.#contradictions + 1 : 0;
    if (this.#contradictions < this.#options.contradictionsMax) return;
    contradicted();
    throw new EtcdError('refused', 'etcd does not hold what is published here');
  }

  /** Where etcd did not answer: whether it was written all the same, behind the revision that it was decided on. */
  #seen(mutation: Mutation, decidedOn: Revision): Revision | undefined {
    for (const change of this.#parts.changesOf(mutation.key, decidedOn)) {
      if (change.kind !== mutation.kind) continue;
      if (change.kind === 'delete' || mutation.kind === 'delete') return change.revision;
      if (Buffer.compare(change.object.body.bytes, mutation.body.bytes) === 0) return change.revision;
    }
    return undefined;
  }

  /** What was written, or what was deleted: in memory as a rule, unless much has happened since. */
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

function textOf(key: Key): string {
  return `${key.shard}|${formatClientKey(key)}`;
}
