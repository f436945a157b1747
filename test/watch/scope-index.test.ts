import test from 'ava';
import { matches } from '../../src/domain/scope.js';
import { ScopeIndex, type View } from '../../src/watch/scope-index.js';
import { aKey, aScope, type Place } from '../support/objects.js';
import { everything, selecting } from './a-hub.js';
import { plainEvents } from './plain-events.js';

function aView(place: Place = {}, rest: Partial<View> = {}): View {
  return { scope: aScope(place), selector: everything, representation: plainEvents(), ...rest };
}

test('watchers with the same scope, selector and representation are one group, whoever made the selector', (t) => {
  const index = new ScopeIndex<string>();

  index.join(aView({}, { selector: selecting('a=1,b=2') }), 'first');
  index.join(aView({}, { selector: selecting('b=2,a==1') }), 'second');

  const groups = [...index.covering(aKey())];
  t.is(groups.length, 1);
  t.deepEqual([...(groups[0]?.members ?? [])], ['first', 'second']);
});

test('another scope, selector or representation is another group', (t) => {
  const index = new ScopeIndex<string>();

  index.join(aView(), 'all');
  index.join(aView({ cluster: 'acme' }), 'cluster');
  index.join(aView({}, { selector: selecting('a') }), 'selector');
  index.join(aView({}, { representation: plainEvents('other') }), 'representation');

  t.is([...index.covering(aKey())].length, 4);
});

test('a key finds exactly the groups whose scope covers it', (t) => {
  const index = new ScopeIndex<View>();
  const places: Place[] = [
    {}, { shard: 'amber' }, { shard: 'birch' }, { cluster: 'acme' }, { cluster: 'beta' }, { shard: 'amber', cluster: 'acme' },
    { name: 'one' }, { name: 'two', cluster: 'acme' }, { namespace: '' }, { namespace: 'default' }, { identity: '*' }, { identity: 'hash' },
    { resource: 'apibindings' }, { group: 'core.kcp.io' },
  ]; // prettier-ignore
  const views = places.map((place) => aView(place));
  for (const view of views) index.join(view, view);

  for (const place of [
    {},
    { shard: 'birch' },
    { cluster: 'beta', name: 'two' },
    { identity: 'hash' },
    { namespace: 'default' },
    { resource: 'apibindings' },
  ] satisfies Place[]) {
    const key = aKey(place);
    const found = [...index.covering(key)].flatMap(({ members }) => [...members].map((view) => views.indexOf(view)));
    t.deepEqual(found.toSorted(), views.flatMap(({ scope }, i) => (matches(scope, key) ? [i] : [])).toSorted());
  }
});

test('a group is gone with its last member, and leaving twice or without having joined is nothing', (t) => {
  const index = new ScopeIndex<string>();
  index.join(aView(), 'first');
  index.join(aView(), 'second');

  index.leave(aView(), 'stranger');
  index.leave(aView(), 'first');
  index.leave(aView(), 'first');
  t.deepEqual(
    [...index.covering(aKey())].flatMap(({ members }) => [...members]),
    ['second'],
  );
  index.leave(aView(), 'second');
  index.leave(aView(), 'second');
  t.is([...index.covering(aKey())].length, 0);
  index.join(aView(), 'again');
  t.is([...index.covering(aKey())].length, 1);
});
