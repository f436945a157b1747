/**
 * What may happen to a store, as commands for fast-check. Each command runs on the model and on the
 * real store, and the results are compared. Snapshots stay open across commands, so writes,
 * compactions and deletes happen between their pages.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Refused } from '../../../src/domain/errors.js';
import type { Key } from '../../../src/domain/key.js';
import type { Mutation } from '../../../src/domain/mutation.js';
import { formatSlice } from '../../../src/domain/slice.js';
import type { Push } from '../../../src/domain/push.js';
import type { Snapshot } from '../../../src/domain/store-port.js';
import type { Revision } from '../../../src/domain/revision.js';
import type { Scope } from '../../../src/domain/scope.js';
import { childNeighbour, type Neighbour, type Via } from '../../../src/domain/via.js';
import { changesBehind, changeText, keyText, listTexts, touchedBehind } from '../../contract/read-all.js';
import type { Engine } from '../../contract/store-contract.js';
import { aDelete, aKey, aPut, aScope, type Place } from '../../support/objects.js';
import {
  aBegin,
  aClusterBegin,
  aClusterEnd,
  aClaim,
  aClear,
  anInvalidation,
  aDrop,
  aKeep,
  aMeet,
  anAssume,
  anEnd,
  aProcess,
  aReach,
  aRetract,
  anUpsert,
} from '../../support/pushes.js';
import { linkText, shardText, type ModelStore } from './model-store.js';

type Reading = { readonly snapshot: Snapshot; readonly scope: Scope; readonly found: string[]; after: Key | undefined };

/** The real store and what this run has opened in it. */
export type Real = {
  readonly engine: Engine;
  readonly readings: Reading[];
  readonly changesMax: number;
  /** The revision at which this run began: its resource was empty before. */
  readonly begin: Revision;
};

type Command = fc.AsyncCommand<ModelStore, Real>;

const shards = ['amber', 'birch'];
const names = ['a', 'b'];
const namespaces = ['', 'x'];
const identities = ['h1', 'h2'];
const neighbours: readonly Neighbour[] = ['parent', childNeighbour('eu')];
const cacheIds = ['c1', 'c2'];
const filters = ['', 'e1', 'e1', 'e2'];

const place = fc.record({
  shard: fc.constantFrom(...shards),
  cluster: fc.constantFrom('acme', 'bold'),
  namespace: fc.constantFrom(...namespaces),
  name: fc.constantFrom(...names),
  identity: fc.constantFrom(...identities),
});

const narrow = fc.record(
  {
    shard: fc.constantFrom('*', ...shards),
    cluster: fc.constantFrom('*', 'acme', 'bold'),
    namespace: fc.constantFrom(...namespaces),
    name: fc.constantFrom(...names),
    identity: fc.constantFrom('*', ...identities),
  },
  { requiredKeys: ['shard', 'cluster', 'identity'] },
);

const scope = fc.oneof(
  narrow,
  fc.constantFrom(
    { shard: '*', cluster: '*', identity: '*' },
    { shard: '*', cluster: 'acme', identity: '*' },
    { shard: 'amber', cluster: '*', identity: 'h1' },
  ),
);

/** Whether a writer knows the state that it overwrites. */
const knowledge = fc.constantFrom('right', 'right', 'right', 'stale', 'absent');

/** Mostly the parts of syncs, because a removal empties the shard, or the type, for all runs. */
const pushKind = fc.constantFrom(
  ...(['claim', 'begin', 'begin', 'upsert', 'upsert', 'upsert', 'upsert', 'keep', 'keep', 'retract', 'end', 'end', 'invalidate'] as const),
  ...(['acquire', 'begin', 'upsert', 'upsert', 'end', 'end', 'meet', 'reach', 'assume', 'leave'] as const),
  ...([
    'acquire',
    'claim',
    'begin',
    'begin',
    'upsert',
    'upsert',
    'upsert',
    'upsert',
    'keep',
    'keep',
    'retract',
    'end',
    'end',
    'clear',
    'drop',
  ] as const),
);

/** How far back, in hundredths of the run; most often not at all. */
const share = fc.oneof(fc.constant(0), fc.nat(100));

export function commands(resource: string): fc.Arbitrary<Iterable<Command>> {
  const typed = (at: Place): Place => ({ ...at, group: '', resource });
  const mutation = fc.record({
    kind: fc.constantFrom('put', 'put', 'delete'),
    place,
    knowledge,
    takes: fc.boolean(),
    bySource: fc.boolean(),
  });
  const push = fc.record({
    kind: pushKind,
    place,
    spec: fc.nat(1),
    term: fc.constantFrom(...Array(8).fill('held'), 'older', 'newer'),
    /** The holder of the shard sends most pushes. */
    by: fc.constantFrom<PushAsked['by']>(...Array<'holder'>(6).fill('holder'), 'local', ...neighbours),
    nowMs: fc.constantFrom(0, 0, 3, 8),
    removed: fc.constantFrom(...Array<false>(9).fill(false), true),
    cacheId: fc.constantFrom(...cacheIds),
    filterHash: fc.constantFrom(...filters),
    /** Whether a `begin` or `end` is for a logical cluster instead of the whole slice. */
    ofCluster: fc.boolean(),
  });
  const ranged = fc.tuple(scope, share, share);
  return fc.commands(
    [
      fc
        .array(mutation, { minLength: 1, maxLength: 12, size: 'max' })
        .map((asked) => new Write(asked.map((each) => ({ ...each, place: typed(each.place) })))),
      fc
        .array(mutation, { minLength: 1, maxLength: 12, size: 'max' })
        .map((asked) => new Write(asked.map((each) => ({ ...each, place: typed(each.place) })))),
      fc
        .array(push, { minLength: 1, maxLength: 24, size: 'max' })
        .map((asked) => new Pushing(asked.map((each) => ({ ...each, place: typed(each.place) })))),
      fc.tuple(scope, share).map(([at, back]) => new Open(aScope(typed(at)), back)),
      fc.nat(3).map((which) => new ReadPage(which)),
      fc.nat(3).map((which) => new ReadPage(which)),
      fc.nat(3).map((which) => new ReadPage(which)),
      fc.nat(3).map((which) => new ReadPage(which)),
      ranged.map(([at, a, b]) => new ReadHistory(aScope(typed(at)), a, b)),
      fc.tuple(scope, share).map(([at, back]) => new Touch(aScope(typed(at)), back)),
      place.map((at) => new Look(typed(at))),
      fc.constant(new Compact()),
      fc.integer({ min: 0, max: 9 }).map((dice) => new Restart(dice)),
    ],
    { maxCommands: 60, size: 'max' },
  );
}

type Asked = Readonly<{ kind: string; place: Place; knowledge: string; takes: boolean; bySource: boolean }>;

/** Mutations submitted together: they may or may not share a commit. */
class Write implements Command {
  readonly #asked: readonly Asked[];

  constructor(asked: readonly Asked[]) {
    this.#asked = asked;
  }

  check = (): boolean => true;

  async run(model: ModelStore, { engine: { store } }: Real): Promise<void> {
    const expected: unknown[] = [];
    const outcomes = this.#asked.map((asked) => {
      const mutation = mutationOf(asked, model);
      expected.push(model.submit(mutation));
      return store.writer.submit(mutation);
    });

    const received = (await Promise.all(outcomes)).map((outcome) =>
      outcome.kind === 'written' ? { kind: outcome.kind, revision: outcome.revision } : outcome,
    );

    assert.deepEqual(received, expected);
    assert.equal(store.revisions.published, model.published, 'published');
  }

  toString = (): string =>
    `write ${this.#asked.map(({ kind, knowledge, place: at }) => `${kind} ${knowledge} ${keyText(aKey(at))}`).join(', ')}`;
}

type PushAsked = Readonly<{
  kind: Exclude<Push['kind'], 'compare'>;
  place: Place;
  spec: number;
  term: string;
  by: 'holder' | Via;
  nowMs: number;
  removed: boolean;
  cacheId: string;
  filterHash: string;
  ofCluster: boolean;
}>;

/** Pushes given to one lane together. */
class Pushing implements Command {
  readonly #asked: readonly PushAsked[];

  constructor(asked: readonly PushAsked[]) {
    this.#asked = asked;
  }

  check = (): boolean => true;

  async run(model: ModelStore, { engine: { store } }: Real): Promise<void> {
    const expected: unknown[] = [];
    const pushes = this.#asked.flatMap((asked) => {
      const push = pushOf(asked, model);
      // A claim that takes over a tombstone also removes the objects behind it, because otherwise
      // the next start would remove them.
      const together = push.kind === 'claim' && push.removed ? [push, aClear(push.shard, { fence: false })] : [push];
      for (const each of together) expected.push(model.push(each));
      return together;
    });

    assert.deepEqual(await store.writer.lane().push(pushes), expected);

    assert.equal(store.revisions.published, model.published, 'published');
    assert.deepEqual([...store.state.shards].map(shardText).toSorted(), model.shards());
    assert.deepEqual([...store.state.links].map(linkText).toSorted(), model.links());
    const slices = [...store.state.slices].map(
      ({ slice, objects, syncedTerm, everSynced, filterHash }) =>
        `${formatSlice(slice)} ${objects} ${everSynced ? `${syncedTerm} ${filterHash}` : 'never'}`,
    );
    assert.deepEqual(slices.toSorted(), model.slices());
  }

  toString = (): string =>
    `push ${this.#asked.map(({ place: at, ...asked }) => `${JSON.stringify(asked)} ${keyText(aKey(at))}`).join(', ')}`;
}

class Open implements Command {
  readonly #scope: Scope;
  readonly #back: number;

  constructor(of: Scope, back: number) {
    this.#scope = of;
    this.#back = back;
  }

  check = (): boolean => true;

  async run(model: ModelStore, { engine: { store }, readings, begin }: Real): Promise<void> {
    const revision = revisionAt(model, begin, this.#back);
    if (revision < store.revisions.compacted) return assertExpired(async () => store.objects.snapshot(this.#scope, revision));
    readings.push({ snapshot: store.objects.snapshot(this.#scope, revision), scope: this.#scope, found: [], after: undefined });
  }

  toString = (): string => `open ${JSON.stringify(this.#scope)} ${this.#back}/100 back`;
}

class ReadPage implements Command {
  readonly #which: number;

  constructor(which: number) {
    this.#which = which;
  }

  check = (): boolean => true;

  async run(model: ModelStore, { engine: { store }, readings }: Real): Promise<void> {
    const reading = readings[this.#which % readings.length];
    if (reading === undefined) return;
    const { snapshot, scope: of, found } = reading;
    const close = (): void => {
      snapshot.close();
      readings.splice(readings.indexOf(reading), 1);
    };
    if (snapshot.revision < store.revisions.compacted) {
      await assertExpired(() => snapshot.page(reading.after));
      return close();
    }
    const page = await snapshot.page(reading.after);
    found.push(...page.objects.map(({ key, revision }) => `${keyText(key)}@${revision}`));
    reading.after = page.next;
    if (page.next !== undefined) return;
    close();
    assert.deepEqual(found.toSorted(), model.at(snapshot.revision, of).toSorted(), `the snapshot at ${snapshot.revision}`);
  }

  toString = (): string => `read page of ${this.#which}`;
}

class ReadHistory implements Command {
  readonly #scope: Scope;
  readonly #back: readonly [number, number];

  constructor(of: Scope, a: number, b: number) {
    this.#scope = of;
    this.#back = [Math.max(a, b), Math.min(a, b)];
  }

  check = (): boolean => true;

  async run(model: ModelStore, { engine: { store }, begin }: Real): Promise<void> {
    const [after, upTo] = this.#back.map((back) => revisionAt(model, begin, back)) as [Revision, Revision];
    if (after < upTo && after < store.revisions.compacted) return assertExpired(() => changesBehind(store, this.#scope, after, upTo));
    assert.deepEqual((await changesBehind(store, this.#scope, after, upTo)).map(changeText), model.changes(this.#scope, after, upTo));
  }

  toString = (): string => `history of ${JSON.stringify(this.#scope)} ${this.#back.join('…')}/100 back`;
}

class Touch implements Command {
  readonly #scope: Scope;
  readonly #back: number;

  constructor(of: Scope, back: number) {
    this.#scope = of;
    this.#back = back;
  }

  check = (): boolean => true;

  async run(model: ModelStore, { engine: { store }, begin }: Real): Promise<void> {
    const after = revisionAt(model, begin, this.#back);
    const { published } = model;
    if (!store.history.remembers(after)) {
      if (after < published) await assertExpired(() => touchedBehind(store, this.#scope, after));
      return;
    }
    assert.deepEqual(await touchedBehind(store, this.#scope, after), model.touched(this.#scope, after, published));
  }

  toString = (): string => `touched of ${JSON.stringify(this.#scope)} ${this.#back}/100 back`;
}

/** Every kind of read of one place, at the present revision. */
class Look implements Command {
  readonly #place: Place;

  constructor(at: Place) {
    this.#place = at;
  }

  check = (): boolean => true;

  async run(model: ModelStore, { engine: { store } }: Real): Promise<void> {
    const key = aKey(this.#place);
    assert.equal((await store.objects.get(key))?.revision, model.held(key));
    const { shard: _shard, ...anywhere } = this.#place;
    const there = aScope({ ...anywhere, identity: '*' });
    const found = (await store.objects.find(there)).map((object) => `${keyText(object.key)}@${object.revision}`);
    assert.deepEqual(found.toSorted(), model.at(model.published, there).toSorted());
    const wide = aScope({ ...this.#place, shard: '*', cluster: '*', identity: '*' });
    assert.equal(await store.objects.count(wide, undefined, 1000), model.at(model.published, wide).length);
    assert.deepEqual((await listTexts(store, wide)).length, model.at(model.published, wide).length);
  }

  toString = (): string => `look at ${keyText(aKey(this.#place))}`;
}

class Compact implements Command {
  check = (): boolean => true;

  async run(_model: ModelStore, { engine, readings, changesMax }: Real): Promise<void> {
    const before = engine.store.revisions.compacted;
    const lowest = Math.min(...readings.map(({ snapshot }) => snapshot.revision));
    await engine.compact();
    const { compacted, published } = engine.store.revisions;
    const wanted = Math.max(before, published - changesMax);
    assert.ok(compacted >= before, 'the compacted revision never falls');
    // An open reading may hold compaction back, for a bounded time.
    assert.ok(
      compacted === wanted || (compacted < wanted && compacted >= Math.min(wanted, lowest)),
      `compacted ${compacted}, wanted ${wanted}, held at ${lowest}`,
    );
  }

  toString = (): string => 'compact';
}

/** One in ten, because a restart takes a while. */
class Restart implements Command {
  readonly #dice: number;

  constructor(dice: number) {
    this.#dice = dice;
  }

  check = (): boolean => this.#dice === 0;

  async run(model: ModelStore, { engine, readings }: Real): Promise<void> {
    const { compacted, published } = engine.store.revisions;
    const text = engine.store.revisions.format(published);
    readings.length = 0;

    model.forgetSyncs();
    const store = await engine.restart();

    assert.equal(store.revisions.published, model.published);
    assert.equal(store.revisions.compacted, compacted);
    assert.equal(store.revisions.format(published), text);
  }

  toString = (): string => 'restart';
}

function mutationOf({ kind, place: at, knowledge: known, takes, bySource }: Asked, model: ModelStore): Mutation {
  const as = takes ? { takes } : { bySource };
  const held = model.held(aKey(at));
  const expect = known === 'absent' || held === undefined ? 'absent' : known === 'stale' ? Math.max(1, held - 1) : held;
  if (kind === 'put') return { ...aPut(at, expect, { spec: model.published }), ...as };
  return { ...aDelete(at, expect === 'absent' ? 'any' : expect), ...as };
}

function pushOf(asked: PushAsked, model: ModelStore): Push {
  const { kind, place: at, spec, term: known, by, nowMs, removed, cacheId, filterHash } = asked;
  const { shard } = aKey(at);
  const held = model.termOf(shard);
  const term = known === 'held' ? held : Math.max(0, held + (known === 'newer' ? 1 : -1));
  const via = by === 'holder' ? (model.viaOf(shard) ?? 'local') : by;
  const speaker = via === 'local' ? term : via;
  const link = via === 'local' ? 'parent' : via;
  const ofCluster = asked.ofCluster && via === 'local';
  switch (kind) {
    case 'claim':
      return aClaim({ shard, term, via: link, removed });
    case 'acquire':
      return { kind, shard, process: aProcess(term), term: removed ? 0 : term, nowMs };
    case 'begin':
      return ofCluster ? aClusterBegin(at, speaker) : aBegin(at, speaker);
    case 'upsert':
      return anUpsert(at, { spec }, speaker);
    case 'keep':
      return aKeep(at, speaker);
    case 'retract':
      return aRetract(at, speaker);
    case 'end':
      return ofCluster ? aClusterEnd(at, speaker) : anEnd(at, speaker, via === 'local' ? '' : filterHash);
    case 'invalidate':
      return anInvalidation(at, speaker);
    case 'meet':
      return aMeet(cacheId, link);
    case 'reach':
      return model.hasMet(link) ? aReach(`${spec}`, link) : aMeet(cacheId, link);
    case 'assume':
      return anAssume(shard);
    case 'leave':
      return { kind, neighbour: link };
    case 'clear':
      return aClear(shard, { fence: spec === 1, nowMs: 0 });
    case 'drop':
      return aDrop(at);
  }
}

function revisionAt({ published }: ModelStore, begin: Revision, back: number): Revision {
  return published - Math.round(((published - begin) * back) / 100);
}

async function assertExpired(read: () => Promise<unknown>): Promise<void> {
  await assert.rejects(read, (error) => error instanceof Refused && error.refusal.reason === 'Expired');
}
