import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import type { Change } from '../../../src/domain/change.js';
import { addDigest, digestOf, emptyDigest, formatDigest } from '../../../src/domain/slices/digest.js';
import type { Key } from '../../../src/domain/key.js';
import type { StoredObject } from '../../../src/domain/object.js';
import type { Snapshot } from '../../../src/domain/store-port.js';
import { filterChanges, filterObjects } from '../../../src/tree/filters/filtered-changes.js';
import { LinkFilter } from '../../../src/tree/filters/link-filter.js';
import { SliceWalk } from '../../../src/tree/syncs/slice-walk.js';
import { aPolicy, anObject } from '../../support/link-rules.js';
import { aKey } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';
import { FakeHistory } from './some-changes.js';

const everything = new LinkFilter(aPolicy({ types: ['*'] }), aPolicy({ types: ['*'] }));
const gold = new LinkFilter(aPolicy({ labels: 'tier=gold' }), aPolicy({ types: ['*'] }));
const paths = { clustersAt: async () => [], ownersOf: async () => [], pathsOf: async () => [] };

/** The present objects, in pages of two. */
function aSnapshot(history: FakeHistory): Snapshot & { closed: boolean } {
  const objects = [...history.held.values()].toSorted((one, other) => (one.key.name < other.key.name ? -1 : 1));
  return {
    revision: history.published,
    closed: false,
    async page(after) {
      const at = after === undefined ? 0 : objects.findIndex(({ key }) => key.name > after.name);
      const page = at < 0 ? [] : objects.slice(at, at + 2);
      const isLast = at < 0 || at + 2 >= objects.length;
      return { objects: page, next: isLast ? undefined : page.at(-1)?.key };
    },
    close() {
      this.closed = true;
    },
  };
}

type Receiver = Map<string, StoredObject>;

function textOf({ name }: Key): string {
  return name;
}

async function report(change: Change, filter: LinkFilter, walk: SliceWalk, receiver: Receiver): Promise<void> {
  walk.touch(change.key);
  for (const { before, after } of await filterChanges([change], { filter, paths })) {
    walk.apply(change, before, after);
    if (after === undefined) receiver.delete(textOf(change.key));
    else receiver.set(textOf(change.key), after);
  }
}

function digestText(objects: Iterable<StoredObject>): string {
  return formatDigest([...objects].reduce((sum, { key, body }) => addDigest(sum, digestOf(key, body)), emptyDigest));
}

const anyStep = fc.oneof(
  fc.constant('page' as const),
  fc.record({
    name: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    tier: fc.constantFrom('gold', 'tin', undefined),
    spec: fc.nat({ max: 3 }),
  }),
);

test('whatever changes between the pages, the other end holds what passes the filter, and the digest agrees', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { maxLength: 12 }), fc.array(anyStep, { maxLength: 25 }), async (before, during) => {
      for (const filter of [everything, gold]) {
        const history = new FakeHistory();
        const write = (step: Exclude<typeof anyStep extends fc.Arbitrary<infer Step> ? Step : never, 'page'>): void => {
          const { name, tier, spec } = step;
          history.commit({ place: { name }, content: tier === undefined ? undefined : { labels: { tier }, rest: { spec } } });
        };
        for (const step of before) if (step !== 'page') write(step);
        const walk = new SliceWalk(aSnapshot(history), { sums: filter === gold });
        const receiver: Receiver = new Map();
        const page = async (): Promise<void> => {
          const crossing = await filterObjects(await walk.page(), { slice: aSlice(), filter, paths });
          for (const object of crossing) if (walk.add(object)) receiver.set(textOf(object.key), object);
        };
        for (const step of during) {
          if (step !== 'page') {
            write(step);
            const change = history.all.at(-1);
            if (change !== undefined) await report(change, filter, walk, receiver);
          } else if (!walk.isThrough) await page();
        }
        while (!walk.isThrough) await page();

        const crosses = [...history.held.values()].filter((object) => filter.lets(object, undefined));
        t.is(digestText(receiver.values()), digestText(crosses));
        if (filter === gold) t.is(walk.sum && formatDigest(walk.sum), digestText(crosses));
        else t.is(walk.sum, undefined);
      }
    }),
    { numRuns: rounds(60) },
  );
});

test('a walk has no digest once something other than a change has moved it', (t) => {
  const walk = new SliceWalk(aSnapshot(new FakeHistory()), { sums: true });

  walk.giveUpSum();
  walk.add(anObject());

  t.is(walk.sum, undefined);
});

test('a walk during which too many keys change is overrun, and closes its snapshot', (t) => {
  const history = new FakeHistory();
  const snapshot = aSnapshot(history);
  const walk = new SliceWalk(snapshot, { sums: false });

  for (let i = 0; i <= 200_000; i++) walk.touch({ ...aKey(), name: `o-${i}` });
  walk.close();

  t.true(walk.isOverrun);
  t.true(snapshot.closed);
});

test('a walk that has ended holds no snapshot, however long its end has to wait', async (t) => {
  const history = new FakeHistory();
  for (const name of ['a', 'b', 'c']) history.commit({ place: { name }, content: {} });
  const snapshot = aSnapshot(history);
  const walk = new SliceWalk(snapshot, { sums: true });

  await walk.page();
  t.false(snapshot.closed);
  await walk.page();

  t.true(walk.isThrough);
  t.true(snapshot.closed);
});
