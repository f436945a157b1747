/** Random requests to an engine. The few keys, shards and neighbours make conflicts likely. */
import fc from 'fast-check';
import { bucketOf, bucketSet, noBuckets } from '../../src/domain/slices/buckets.js';
import type { ShardState } from '../../src/domain/claim.js';
import type { LinkState, Push, SliceState } from '../../src/domain/push.js';
import type { Mutation } from '../../src/domain/mutation.js';
import type { Revision } from '../../src/domain/revision.js';
import type { Store } from '../../src/domain/store-port.js';
import { formatSlice } from '../../src/domain/slice.js';
import type { Neighbour, Via } from '../../src/domain/via.js';
import type { Place } from '../support/objects.js';
import { aDelete, aKey, aPut, shardName } from '../support/objects.js';
import {
  aBegin,
  aClaim,
  aClusterBegin,
  aClusterEnd,
  aCompare,
  anInvalidation,
  aDrop,
  aKeep,
  anEnd,
  aRetract,
  aSlice,
  anUpsert,
} from '../support/pushes.js';

/** The engine's state when a step begins. */
type Known = Readonly<{
  shards: readonly ShardState[];
  slices: readonly SliceState[];
  links: readonly LinkState[];
  published: Revision;
}>;

export function knownIn({ state, revisions: { published } }: Store): Known {
  return { shards: [...state.shards], slices: [...state.slices], links: [...state.links], published };
}

export type EngineStep = Readonly<
  | { kind: 'push'; pushes: Ask }
  | { kind: 'mutate'; mutation: (store: Store) => Promise<Mutation> }
  | { kind: 'restart' }
  | { kind: 'compact' }
>;

const shard = fc.constantFrom('amber', 'birch');
const slicePlace: fc.Arbitrary<Place> = fc.record({ shard, resource: fc.constantFrom('apiexports', 'others') });
const inCluster = { cluster: fc.constantFrom('acme', 'bold'), name: fc.constantFrom('a', 'b', 'c') };
const place: fc.Arbitrary<Place> = fc.record({ shard, resource: fc.constantFrom('apiexports', 'others'), ...inCluster });
const content = fc.oneof(fc.record({ spec: fc.nat(2) }), fc.record({ spec: fc.nat(2), path: fc.constantFrom('root:x', 'root:y') }));
const neighbours: readonly Neighbour[] = ['parent', 'child/east', 'child/west'];
const neighbour = fc.constantFrom(...neighbours);
const via = fc.constantFrom<Via>('local', 'local', ...neighbours);
/** Each engine has an id of its own; this one is higher than all of them. */
const far = '~far';
/** The distance of a claim's term from the shard's term. */
const lead = fc.constantFrom(-1, 0, 0, 1, 1);
const filterHash = fc.constantFrom('', 'e1', 'e2');
/** The buckets that an `end` or a removal leaves alone; mostly none. */
const buckets = fc.oneof(
  { weight: 4, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.constant(noBuckets) },
  {
    weight: 2,
    arbitrary: fc.array(fc.record(inCluster), { maxLength: 4 }).map((places) => bucketSet(places.map((each) => bucketOf(aKey(each))))),
  },
);
const isThroughNow = fc.constantFrom(false, false, true);

type By = number | Neighbour;

/** The holder of the shard sends most pushes, because otherwise most would be fenced. */
const speaker = fc.oneof(
  { weight: 5, arbitrary: fc.constant('holder' as const) },
  { weight: 1, arbitrary: fc.constantFrom<By>(1, 2, ...neighbours) },
);

type Ask = (known: Known) => readonly Push[];

/** Pushes for the shard of a place. */
const spoken = <T extends Place>(of: fc.Arbitrary<T>, ask: (of: T, by: By) => readonly Push[]): fc.Arbitrary<Ask> =>
  fc.tuple(of, speaker).map(
    ([place, who]) =>
      (known) =>
        ask(place, who === 'holder' ? holderOf(known, place) : who),
  );

const claim = fc
  .record({ shard, via, lead, moves: fc.nat(2), removed: fc.constantFrom(false, false, false, true) })
  .map(({ lead: above, ...claimed }): Ask => (known) => [aClaim({ ...claimed, origin: far, term: rankOf(known, claimed) + above })]);

/** A pusher that names its last term or another one. */
const arrival = fc
  .record({ shard, process: fc.constantFrom('p1', 'p2'), lead: fc.constantFrom(-1, 0, 0, 1), isFirst: fc.boolean(), nowMs: fc.nat(9) })
  .map(({ shard: name, process, lead: above, isFirst, nowMs }): Ask => (known) => {
    const term = isFirst ? 0 : Math.max(0, rankOf(known, { shard: name }) + above);
    return [{ kind: 'acquire', shard: shardName(name), process, term, nowMs }];
  });

const end = fc
  .record({ of: slicePlace, filterHash, buckets, lead: fc.constantFrom(undefined, undefined, -1, 0) })
  .chain(({ of, filterHash: through, buckets: sent, lead: above }) =>
    speaker.map((who): Ask => (known) => {
      const push = anEnd(of, who === 'holder' ? holderOf(known, of) : who, through);
      if (push.kind !== 'end') throw new Error('the push is no end');
      const term = above === undefined ? {} : { term: Math.max(1, rankOf(known, of) + above) };
      return [{ ...push, ...term, ...(sent !== undefined && { buckets: sent }) }];
    }),
  );

const clear = fc
  .record({ shard, fence: fc.boolean(), nowMs: fc.nat(3), onlyRemoved: fc.boolean(), isThroughNow })
  .map(({ shard: name, fence, nowMs, onlyRemoved, isThroughNow: isBounded }): Ask => ({ published }) => [
    { kind: 'clear', shard: shardName(name), fence, nowMs, ...(onlyRemoved && { onlyRemoved }), ...(isBounded && { through: published }) },
  ]);

const sync = fc
  .record({ of: slicePlace, filterHash, places: fc.array(place, { maxLength: 4 }), content, kept: place, ends: fc.boolean() })
  .chain(({ of, places, content: what, kept, ends, ...end }) =>
    spoken(fc.constant(of), (_, by) => [
      aBegin(of, by),
      ...places.map((each) => anUpsert({ ...each, ...of }, what, by)),
      aKeep({ ...kept, ...of }, by),
      ...(ends ? [anEnd(of, by, end.filterHash)] : []),
    ]),
  );

const withContent = fc.tuple(place, content).map(([of, what]) => ({ ...of, what }));
const withMatch = fc.tuple(slicePlace, fc.boolean()).map(([of, matches]) => ({ ...of, matches }));

const push: fc.Arbitrary<Ask> = fc.oneof(
  { weight: 4, arbitrary: claim },
  { weight: 2, arbitrary: arrival },
  { weight: 5, arbitrary: sync },
  { weight: 1, arbitrary: spoken(slicePlace, (of, by) => [aBegin(of, by)]) },
  { weight: 2, arbitrary: spoken(place, (of, by) => [aClusterBegin(of, by)]) },
  { weight: 2, arbitrary: spoken(place, (of, by) => [aClusterEnd(of, by)]) },
  { weight: 6, arbitrary: spoken(withContent, ({ what, ...of }, by) => [anUpsert(of, what, by)]) },
  { weight: 2, arbitrary: spoken(place, (of, by) => [aKeep(of, by)]) },
  { weight: 4, arbitrary: spoken(place, (of, by) => [aRetract(of, by)]) },
  { weight: 4, arbitrary: end },
  { weight: 1, arbitrary: spoken(slicePlace, (of, by) => [anInvalidation(of, by)]) },
  { weight: 1, arbitrary: clear },
  {
    weight: 1,
    arbitrary: fc.tuple(slicePlace, isThroughNow).map(([of, isBounded]): Ask => ({ published }) => [
      isBounded ? aDrop(of, published) : aDrop(of),
    ]),
  },
  {
    weight: 1,
    arbitrary: slicePlace.map((of): Ask => () => [{ kind: 'assume', shard: aSlice(of).shard }]),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(neighbour, fc.constantFrom('k1', 'k2', 'k3')).map(([of, cacheId]): Ask => () => [
      { kind: 'meet', neighbour: of, cacheId },
    ]),
  },
  {
    weight: 1,
    arbitrary: neighbour.map((of): Ask => () => [{ kind: 'leave', neighbour: of }]),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(neighbour, fc.constantFrom('7', '8', '')).map(([of, position]): Ask => () => [
      { kind: 'reach', neighbour: of, position },
    ]),
  },
  {
    weight: 2,
    arbitrary: withMatch.chain(({ matches, ...of }) =>
      speaker.map((who): Ask => (known) => [compare(known, of, who === 'holder' ? holderOf(known, of) : who, matches)]),
    ),
  },
);

/** What a writer over plain HTTP expects: the present state, no object, or an outdated state. */
const expects = fc.constantFrom('held', 'held', 'held', 'nothing', 'another');
/** A write has at most one of these flags (intake/writes/plain-writes.ts). */
const way = fc.constantFrom<Readonly<{ takes?: boolean; bySource?: boolean }>>({}, {}, { takes: true }, { bySource: true });
const wayOfPut = fc.oneof({ weight: 4, arbitrary: way }, { weight: 1, arbitrary: fc.constant({ keeps: true }) });

const mutation = fc.oneof(
  fc.tuple(place, content, expects, wayOfPut).map(([of, what, expected, as]) => async (store: Store): Promise<Mutation> => {
    const held = (await store.objects.get(aKey(of)))?.revision;
    const expect = expected === 'another' ? (held ?? 0) + 1 : expected === 'nothing' ? 'absent' : (held ?? 'absent');
    return { ...aPut(of, expect, what), ...as };
  }),
  fc.tuple(place, expects, way).map(([of, expected, as]) => async (store: Store): Promise<Mutation> => {
    const held = (await store.objects.get(aKey(of)))?.revision ?? 0;
    return { ...aDelete(of, expected === 'another' ? held + 1 : expected === 'nothing' ? 'any' : held), ...as };
  }),
);

export const engineStep: fc.Arbitrary<EngineStep> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .array(push, { minLength: 1, maxLength: 8 })
      .map((asks) => ({ kind: 'push' as const, pushes: (known: Known) => asks.flatMap((ask) => ask(known)) })),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('mutate' as const), mutation }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('restart' as const, 'compact' as const) }) },
);

function stateOf({ shards }: Known, of: Place): ShardState | undefined {
  return shards.find((state) => state.shard === aSlice(of).shard);
}

function rankOf(known: Known, of: Place): number {
  return Math.max(1, stateOf(known, of)?.term ?? 1);
}

function holderOf(known: Known, of: Place): By {
  const state = stateOf(known, of);
  return state?.via === undefined || state.via === 'local' ? (state?.term ?? 1) : state.via;
}

function compare({ slices }: Known, of: Place, who: By, isRight: boolean): Push {
  const held = slices.find(({ slice }) => formatSlice(slice) === formatSlice(aSlice(of)));
  return aCompare(isRight && held !== undefined ? held.digest : '0'.repeat(24), of, who);
}
