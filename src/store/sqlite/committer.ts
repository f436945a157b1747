/**
 * The only writer (D3): one transaction per batch, with the decision on each mutation and push inside it, in queue order.
 *
 * I3 A batch is durable, and the witness knows it, before anyone hears of it. A batch that fails leaves no trace: what is held in
 *    memory is as before, and statements under way are forgotten, for some of what they heard is lost. So are the removals that
 *    were in the batch: whoever asked is told.
 */
import assert from 'node:assert/strict';
import { unreachable } from '../../domain/errors.js';
import { decide, type Mutation } from '../../domain/mutation.js';
import type { Push } from '../../domain/push.js';
import type { Revision } from '../../domain/revision.js';
import { ChangeWriter } from './change-writer.js';
import type { Asked, Sweeping } from './asked.js';
import type { Byproduct, Committed, Decided } from './committer-messages.js';
import type { Connection } from './database.js';
import { Fence } from './fence.js';
import { SliceTable } from './slice-table.js';
import { Statements, type SliceRange, type Walk } from './statements.js';
import { Sweep } from './sweep.js';
import type { Witness } from './witness.js';

type Pushed = Exclude<Push, { kind: 'claim' | 'clear' | 'drop' }>;

type PushOf<Kind extends Push['kind']> = Extract<Push, { kind: Kind }>;

const unchanged: Decided = { kind: 'unchanged' };

export class Committer {
  readonly #database: Connection;
  readonly #witness: Witness;
  readonly #momentIntervalMs: number;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #underWay = new Statements();
  readonly #fence: Fence;
  readonly #slices: SliceTable;
  readonly #writer: ChangeWriter;
  readonly #sweep: Sweep;
  #swept: Byproduct[] = [];
  #momentMs: number;

  constructor(database: Connection, witness: Witness, momentIntervalMs: number) {
    this.#database = database;
    this.#witness = witness;
    this.#momentIntervalMs = momentIntervalMs;
    this.#statements = prepare(database);
    this.#fence = new Fence(database);
    this.#slices = new SliceTable(database);
    this.#writer = new ChangeWriter(database, this.#slices, this.#underWay);
    this.#sweep = new Sweep(database, this.#writer);
    this.#momentMs = this.#statements.lastMoment.get() ?? 0;
  }

  /** Throws what SQLite throws when the disk takes nothing; the state is then as before. */
  commit(batch: readonly Asked[], nowMs: number): Committed {
    const momentMs = this.#momentMs;
    this.#writer.open();
    this.#slices.open(nowMs);
    this.#underWay.open();
    this.#swept = [];
    let done: Pick<Committed, 'decided' | 'slices'>;
    try {
      done = this.#database
        .transaction(() => {
          const decided = batch.map((asked) => this.#decide(asked));
          const slices = this.#slices.write();
          if (this.#writer.written > 0) this.#note(nowMs);
          return { decided, slices };
        })
        .immediate();
    } catch (error) {
      this.#momentMs = momentMs;
      this.#writer.undo();
      this.#slices.undo();
      this.#fence.undo();
      this.#underWay.undo(this.#writer.revision);
      throw error;
    }
    return this.#committed(done);
  }

  /** A compaction has taken that many bytes out of the log, and has noted so itself. */
  shrink(bytes: number): number {
    this.#writer.shrink(bytes);
    return this.#writer.logBytes;
  }

  /** Writes something that means nothing. Throws what SQLite throws when the disk takes nothing. */
  probe(): void {
    this.#statements.countProbe.run();
  }

  #committed(done: Pick<Committed, 'decided' | 'slices'>): Committed {
    const { revision, written, restated, movedPaths, logBytes } = this.#writer;
    const asked = done.decided.filter(({ kind }) => kind === 'written').length;
    assert.equal(written, asked + restated.length + this.#swept.length, 'I2');
    if (written > 0) this.#witness.testify(revision);
    const shards = this.#fence.changed;
    this.#slices.keep();
    this.#fence.keep();
    return { revision, ...done, restated, swept: this.#swept, movedPaths, shards, logBytes };
  }

  #decide(asked: Asked): Decided {
    switch (asked.kind) {
      case 'put':
      case 'delete':
        return this.#mutate(asked);
      case 'claim':
        return this.#claim(asked);
      case 'clear':
        return this.#clear(asked);
      case 'drop':
        return this.#drop(asked);
      case 'resume':
        return this.#resume(asked.push, asked.walk);
      default:
        return this.#fenced(asked) ?? this.#push(asked);
    }
  }

  #mutate(mutation: Mutation): Decided {
    const { key } = mutation;
    const place = this.#writer.place(key);
    const held = this.#writer.held(place);
    const verdict = decide(mutation, held?.revision);
    if (verdict !== 'write') return { kind: 'refused', why: verdict };
    if (mutation.kind === 'put') {
      this.#fence.revive(key.shard);
      return written(this.#writer.put(key, place, mutation.body, mutation.path, held), held?.revision);
    }
    assert(held !== undefined, 'what is deleted is there');
    return written(this.#writer.delete(key, place, held), held.revision);
  }

  /** Whoever claims a shard begins anew: a statement that another connection left unfinished is none of its own. */
  #claim({ shard, incarnation }: PushOf<'claim'>): Decided {
    const fenced = this.#fence.claim(shard, incarnation);
    if (fenced === undefined) this.#underWay.forgetRange({ shard });
    return fenced ?? unchanged;
  }

  #fenced(push: Pushed): Decided | undefined {
    const { shard } = 'key' in push ? push.key : push.slice;
    return this.#fence.refuse(shard, push.incarnation);
  }

  #push(push: Pushed): Decided {
    switch (push.kind) {
      case 'begin':
        return this.#begin(push);
      case 'state':
        return this.#state(push);
      case 'keep':
        return this.#keep(push);
      case 'retract':
        return this.#retract(push);
      case 'end':
        return this.#end(push, undefined);
      case 'doubt':
        return this.#doubt(push);
      default:
        return unreachable(push);
    }
  }

  #begin({ slice }: PushOf<'begin'>): Decided {
    const resource = this.#writer.resource(slice.resource);
    this.#slices.doubt(slice, resource);
    this.#underWay.begin(slice.shard, resource, this.#writer.revision);
    return unchanged;
  }

  #state({ key, body, path }: PushOf<'state'>): Decided {
    const place = this.#writer.place(key);
    const held = this.#writer.compare(place, body);
    if (!held.isSame) return written(this.#writer.put(key, place, body, path, held), held.revision);
    this.#underWay.confirm(key.shard, place[0], held.revision);
    return unchanged;
  }

  #keep({ key }: PushOf<'keep'>): Decided {
    const place = this.#writer.place(key);
    const held = this.#writer.held(place);
    if (held !== undefined) this.#underWay.confirm(key.shard, place[0], held.revision);
    return unchanged;
  }

  #retract({ key }: PushOf<'retract'>): Decided {
    const place = this.#writer.place(key);
    const held = this.#writer.held(place);
    return held === undefined ? unchanged : written(this.#writer.delete(key, place, held), held.revision);
  }

  #doubt({ slice }: PushOf<'doubt'>): Decided {
    const resource = this.#writer.resource(slice.resource);
    this.#slices.doubt(slice, resource);
    this.#underWay.forget(slice.shard, resource);
    return unchanged;
  }

  #resume(push: Sweeping, walk: number): Decided {
    if (push.kind === 'end') return this.#fenced(push) ?? this.#end(push, walk);
    const known = this.#underWay.removal(walk);
    return known === undefined ? { kind: 'unbegun' } : this.#remove(known);
  }

  #end({ slice, incarnation }: PushOf<'end'>, resumed: number | undefined): Decided {
    const { shard, resource } = slice;
    const id = this.#writer.resource(resource);
    const statement = this.#underWay.running(shard, id);
    // A statement with another walk, or none, is another one, which began meanwhile.
    if (statement === undefined || (resumed !== undefined && statement.walk?.number !== resumed)) return { kind: 'unbegun' };
    statement.walk ??= this.#underWay.walk(statement.survey, [{ id, slice }]);
    const decided = this.#step(statement.walk);
    if (decided.kind === 'partial') return decided;
    this.#underWay.forget(shard, id);
    this.#slices.state(slice, id, incarnation);
    return decided;
  }

  #clear({ shard, fence, nowMs }: PushOf<'clear'>): Decided {
    if (fence) this.#fence.remove(shard, nowMs);
    return this.#beginRemoval({ shard });
  }

  #drop({ resource }: PushOf<'drop'>): Decided {
    return this.#beginRemoval({ resource: this.#writer.resource(resource) });
  }

  /** Objects that are written or stated while the removal is under way stay: they are of the life after it. */
  #beginRemoval(range: SliceRange): Decided {
    this.#underWay.forgetRange(range);
    this.#slices.forgetStated(range);
    return this.#remove(this.#underWay.beginRemoval(range, this.#writer.revision, this.#slices.held(range)));
  }

  #remove(walk: Walk): Decided {
    const decided = this.#step(walk);
    if (decided.kind === 'swept') this.#underWay.endRemoval(walk);
    return decided;
  }

  #step(walk: Walk): Extract<Decided, { kind: 'swept' | 'partial' }> {
    const swept = this.#sweep.step(walk);
    this.#swept.push(...swept);
    const removed = swept.length;
    return walk.slices.length === 0 ? { kind: 'swept', removed } : { kind: 'partial', removed, walk: walk.number };
  }

  #note(nowMs: number): void {
    const { revision, logBytes } = this.#writer;
    this.#statements.setMeta.run(revision, 'revision');
    this.#statements.setMeta.run(logBytes, 'log_bytes');
    if (nowMs - this.#momentMs < this.#momentIntervalMs && nowMs >= this.#momentMs) return;
    this.#statements.setMoment.run(revision, nowMs);
    this.#momentMs = nowMs;
  }
}

function written(revision: Revision, replaced: Revision = 0): Decided {
  return { kind: 'written', revision, replaced };
}

function prepare(database: Connection) {
  return {
    setMeta: database.prepare(/*sql*/ `UPDATE meta SET value = ? WHERE name = ?`),
    // A page that would not change is not written, hence the count.
    countProbe: database.prepare(
      /*sql*/ `INSERT INTO meta (name, value) VALUES ('probes', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1`,
    ),
    setMoment: database.prepare(
      /*sql*/ `INSERT INTO moments (revision, at_ms) VALUES (?, ?) ON CONFLICT (revision) DO UPDATE SET at_ms = excluded.at_ms`,
    ),
    lastMoment: database.prepare<[], number>(/*sql*/ `SELECT at_ms FROM moments ORDER BY revision DESC LIMIT 1`).pluck(),
  };
}
