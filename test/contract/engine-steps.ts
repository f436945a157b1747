/** Random requests to an engine, in a world small enough that everything meets everything else. */
import fc from 'fast-check';
import type { ShardState } from '../../src/domain/claim.js';
import type { LinkState, Push, SliceState } from '../../src/domain/push.js';
import type { Mutation } from '../../src/domain/mutation.js';
import type { Store } from '../../src/domain/store-port.js';
import { formatSlice } from '../../src/domain/slice.js';
import type { Neighbour, Via } from '../../src/domain/via.js';
import type { Place } from '../support/objects.js';
import { aDelete, aPut } from '../support/objects.js';
import {
  aBegin,
  aClaim,
  aClear,
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

/** What is known when a step's turn comes. */
type Known = Readonly<{ shards: readonly ShardState[]; slices: readonly SliceState[]; links: readonly LinkState[] }>;

export type EngineStep = Readonly<
  | { kind: 'push'; pushes: Ask }
  | { kind: 'mutate'; mutation: (store: Store) => Promise<Mutation> }
  | { kind: 'restart' }
  | { kind: 'compact' }
>;

const shard = fc.constantFrom('amber', 'birch');
const slicePlace: fc.Arbitrary<Place> = fc.record({ shard, resource: fc.constantFrom('apiexports', 'others') });
const place: fc.Arbitrary<Place> = fc.record({
  shard,
  resource: fc.constantFrom('apiexports', 'others'),
  cluster: fc.constantFrom('acme', 'bold'),
  name: fc.constantFrom('a', 'b', 'c'),
});
const content = fc.oneof(fc.record({ spec: fc.nat(2) }), fc.record({ spec: fc.nat(2), path: fc.constantFrom('root:x', 'root:y') }));
const neighbours: readonly Neighbour[] = ['parent', 'child/east', 'child/west'];
const neighbour = fc.constantFrom(...neighbours);
const via = fc.constantFrom<Via>('local', 'local', ...neighbours);
/** Each engine has an id of its own; this one is higher than any. */
const far = '~far';
/** How far a claim's term is above or below the shard's. */
const lead = fc.constantFrom(-1, 0, 0, 1, 1);
const filterHash = fc.constantFrom('', 'e1', 'e2');

type By = number | Neighbour;

/** Mostly the holder of the shard, because otherwise most pushes would be fenced. */
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

const withFilter = fc.tuple(slicePlace, filterHash).map(([of, through]) => ({ ...of, through }));
const withContent = fc.tuple(place, content).map(([of, what]) => ({ ...of, what }));
const withMatch = fc.tuple(slicePlace, fc.boolean()).map(([of, matches]) => ({ ...of, matches }));

const push: fc.Arbitrary<Ask> = fc.oneof(
  { weight: 4, arbitrary: claim },
  { weight: 5, arbitrary: sync },
  { weight: 1, arbitrary: spoken(slicePlace, (of, by) => [aBegin(of, by)]) },
  { weight: 2, arbitrary: spoken(place, (of, by) => [aClusterBegin(of, by)]) },
  { weight: 2, arbitrary: spoken(place, (of, by) => [aClusterEnd(of, by)]) },
  { weight: 6, arbitrary: spoken(withContent, ({ what, ...of }, by) => [anUpsert(of, what, by)]) },
  { weight: 2, arbitrary: spoken(place, (of, by) => [aKeep(of, by)]) },
  { weight: 4, arbitrary: spoken(place, (of, by) => [aRetract(of, by)]) },
  { weight: 4, arbitrary: spoken(withFilter, ({ through, ...of }, by) => [anEnd(of, by, through)]) },
  { weight: 1, arbitrary: spoken(slicePlace, (of, by) => [anInvalidation(of, by)]) },
  {
    weight: 1,
    arbitrary: fc.tuple(shard, fc.record({ fence: fc.boolean(), nowMs: fc.nat(3) })).map((of): Ask => () => [aClear(...of)]),
  },
  {
    weight: 1,
    arbitrary: slicePlace.map((of): Ask => () => [aDrop(of)]),
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
    arbitrary: slicePlace.map((of): Ask => () => [{ kind: 'forget', shard: aSlice(of).shard }]),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(neighbour, fc.constantFrom('7', '8', '')).map(
      ([of, position]): Ask =>
        (known) =>
          reach(known, of, position),
    ),
  },
  {
    weight: 2,
    arbitrary: withMatch.chain(({ matches, ...of }) =>
      speaker.map((who): Ask => (known) => [compare(known, of, who === 'holder' ? holderOf(known, of) : who, matches)]),
    ),
  },
);

const mutation = fc.oneof(
  fc.tuple(place, content, fc.boolean(), fc.boolean()).map(([of, what, takes, isNew]) => async (store: Store): Promise<Mutation> => {
    const current = isNew ? undefined : await store.get(aPut(of, 'absent').key);
    return { ...aPut(of, current?.revision ?? 'absent', what), takes };
  }),
  fc.tuple(place, fc.boolean()).map(([of, takes]) => async (): Promise<Mutation> => ({ ...aDelete(of), takes })),
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

/** A link that never met its neighbour reaches no position. */
function reach({ links }: Known, of: Neighbour, position: string): readonly Push[] {
  return links.some((link) => link.neighbour === of) ? [{ kind: 'reach', neighbour: of, position }] : [];
}

function compare({ slices }: Known, of: Place, who: By, isRight: boolean): Push {
  const held = slices.find(({ slice }) => formatSlice(slice) === formatSlice(aSlice(of)));
  return aCompare(isRight && held !== undefined ? held.digest : '0'.repeat(24), of, who);
}
