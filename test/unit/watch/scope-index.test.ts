import { test } from '../../support/test.js';
import type { Key } from '../../../src/domain/key.js';
import { matches } from '../../../src/domain/scope.js';
import { fastestMs } from '../../support/fastest.js';
import { ScopeIndex, type Group, type View } from '../../../src/watch/scope-index.js';
import { aKey, aScope, type Place } from '../../support/objects.js';
import { everything, selecting } from './a-hub.js';
import { plainEvents } from './plain-events.js';

function aView(place: Place = {}, rest: Partial<View> = {}): View {
  return { scope: aScope(place), selector: everything, representation: plainEvents(), ...rest };
}

test('watchers with the same scope, selector and representation are one group, even with separate selector objects', (t) => {
  const index = new ScopeIndex<string>();

  index.groupOf(aView({}, { selector: selecting('a=1,b=2') }), 0).members.add('first');
  index.groupOf(aView({}, { selector: selecting('b=2,a==1') }), 0).members.add('second');

  const groups = groupsOf(index, aKey());
  t.is(groups.length, 1);
  t.deepEqual([...(groups[0]?.members ?? [])], ['first', 'second']);
});

test('watchers that differ in scope, selector or representation are in different groups', (t) => {
  const index = new ScopeIndex<string>();

  index.groupOf(aView(), 0).members.add('all');
  index.groupOf(aView({ cluster: 'acme' }), 0).members.add('cluster');
  index.groupOf(aView({}, { selector: selecting('a') }), 0).members.add('selector');
  index.groupOf(aView({}, { representation: plainEvents('other') }), 0).members.add('representation');

  t.is(groupsOf(index, aKey()).length, 4);
});

test('a key finds exactly the groups whose scope covers it', (t) => {
  const index = new ScopeIndex<View>();
  const places: Place[] = [
    {}, { shard: 'amber' }, { shard: 'birch' }, { cluster: 'acme' }, { cluster: 'beta' }, { shard: 'amber', cluster: 'acme' },
    { name: 'one' }, { name: 'two', cluster: 'acme' }, { namespace: '' }, { namespace: 'default' }, { identity: '*' }, { identity: 'hash' },
    { resource: 'apibindings' }, { group: 'core.kcp.io' },
  ]; // prettier-ignore
  const views = places.map((place) => aView(place));
  for (const view of views) index.groupOf(view, 0).members.add(view);

  for (const place of [
    {},
    { shard: 'birch' },
    { cluster: 'beta', name: 'two' },
    { identity: 'hash' },
    { namespace: 'default' },
    { resource: 'apibindings' },
  ] satisfies Place[]) {
    const key = aKey(place);
    const found = groupsOf(index, key).flatMap(({ members }) => [...members].map((view) => views.indexOf(view)));
    t.deepEqual(found.toSorted(), views.flatMap(({ scope }, i) => (matches(scope, key) ? [i] : [])).toSorted());
  }
});

test('a removed group is not found, and a new one takes its place on the next request', (t) => {
  const index = new ScopeIndex<string>();
  const [first, other] = [index.groupOf(aView(), 0), index.groupOf(aView({ name: 'one' }), 0)];
  t.is(index.find(aView()), first);
  t.is(index.groupOf(aView(), 7), first);

  index.remove(first);
  t.is(index.find(aView()), undefined);
  t.deepEqual(groupsOf(index, aKey({ name: 'one' })), [other]);
  index.remove(other);
  t.false(index.covers(aKey({ name: 'one' })));
  t.not(index.groupOf(aView(), 7), first);
  t.true(index.covers(aKey()));
});

test('ten thousand scopes that do not cover a key, of all kinds, do not slow down its lookup', (t) => {
  const index = new ScopeIndex<string>();
  const kinds: ((i: number) => Place)[] = [
    (i) => ({ name: `n${i}` }),
    (i) => ({ cluster: `c${i}` }),
    (i) => ({ shard: `s${i}` }),
    (i) => ({ namespace: `ns${i}` }),
    (i) => ({ identity: `id${i}` }),
    (i) => ({ cluster: `c${i}`, name: 'one' }),
  ];
  const key = aKey({ name: 'other' });
  const asksMs = (): number =>
    fastestMs(() => {
      for (let i = 0; i < 5_000; i += 1) index.covering(key);
    }, 10);
  for (const kind of kinds) index.groupOf(aView(kind(0)), 0);
  asksMs();
  const fewMs = asksMs();

  for (let i = 1; i < 10_000; i += 1) index.groupOf(aView(kinds[i % kinds.length]!(i)), 0);
  const manyMs = asksMs();

  t.log(`5,000 keys: ${fewMs.toFixed(1)} ms among 6 scopes, ${manyMs.toFixed(1)} ms among 10,000`);
  t.true(manyMs < 5 * fewMs + 10);
});

function groupsOf<Member>(index: ScopeIndex<Member>, key: Key): readonly Group<Member>[] {
  return index.covering(key).flatMap(({ groups }) => [...groups.values()]);
}
