import { test } from '../../support/test.js';
import type { LinkPolicies } from '../../../src/domain/link-policies.js';
import type { LinkState } from '../../../src/domain/push.js';
import type { Neighbour } from '../../../src/domain/via.js';
import { treeReport, type TreeReportParts } from '../../../src/tree/tree-report.js';
import { aSlice } from '../../support/intake/a-receiver.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { aPolicy } from '../../support/link-rules.js';
import { shardName } from '../../support/objects.js';

const everything = '[{"types":["*"]}]';
const amber = shardName('amber');
const policies: LinkPolicies = {
  forward: aPolicy({ types: ['*'] }),
  follow: [],
  children: new Map([['east', { accept: [], offer: aPolicy({ types: ['*'] }) }]]),
};
const progress = { slices: 5, current: 4, behind: 7, lagMs: 30, resynced: 1, refused: 2 };

function setUp() {
  const clock = new ManualClock();
  const pushes = new FakePushes();
  const link = (neighbour: Neighbour, cacheId: string, position: string): LinkState => ({ neighbour, cacheId, position });
  const report = async (tree: Partial<TreeReportParts['tree']> = {}) => {
    const known = pushes.state;
    const reported = {
      presence: () => ({ isOpen: false, isUp: false, sinceMs: clock.now() - 900, hasReported: false, isComplete: false }),
    };
    const alone = {
      name: undefined,
      route: ['c1'],
      isComplete: true,
      parent: undefined,
      children: [],
      policies,
      freshness: reported,
      claims: new Map(),
    };
    return treeReport({ tree: { ...alone, ...tree }, known, clock });
  };
  return { clock, pushes, link, report };
}

test('a cache without neighbours reports itself as a root, and nothing else', async (t) => {
  const { report } = setUp();

  t.deepEqual(await report(), { name: null, route: ['c1'], hops: 0, complete: true, parent: null, children: [] });
});

test('a parent that cannot be reached is reported with the reason, and with the facts that the store has kept', async (t) => {
  const { clock, pushes, link, report } = setUp();
  const url = 'https://root:6443/services/cache/connect';
  pushes.publish({ links: [link('parent', 'c0', '41')] });
  pushes.publish({ shards: [aShardState(amber, 3, { via: 'parent' })] });
  pushes.hold(aSlice('apiexports'), { filterHash: 'e' });
  pushes.hold(aSlice('apiresourceschemas'));

  const parent = { kind: 'connecting', url, sinceMs: clock.now(), failures: 2, message: 'x'.repeat(500) } as const;
  const tree = await report({ name: 'eu-1', parent });

  t.like(tree, { name: 'eu-1', hops: null });
  t.deepEqual(tree.parent, {
    url: 'https://root:6443',
    failures: 2,
    message: `${'x'.repeat(200)}…`,
    cacheId: 'c0',
    connection: { kind: 'away', forMs: 900 },
    position: '41',
    sending: null,
    receiving: { claims: 0, slices: 2, current: 1, refused: 0, compared: 0, comparedAgoMs: null, differed: 0, claimsIgnored: 0 },
    policies: { own: { up: everything, down: '[]' }, other: null },
  });
});

test('an open link reports its progress in both directions, the comparisons, and the policies of both ends', async (t) => {
  const { clock, report } = setUp();
  const received = { compared: 3, comparedMs: clock.now() - 40, differed: 1, refused: 9, claimsIgnored: 2 };
  const session = { progress, received, otherPolicy: { up: [], down: policies.forward } };
  const parent = { kind: 'open', url: 'https://root:6443/', sinceMs: clock.now() - 5, cacheId: 'c0', session } as const;

  const tree = await report({ name: 'eu-1', route: ['c1', 'c0', 'c9'], parent });

  t.is(tree.hops, 2);
  t.deepEqual(tree.parent, {
    url: 'https://root:6443',
    failures: 0,
    message: null,
    cacheId: 'c0',
    connection: { kind: 'connected', forMs: 5, peer: 'root:6443' },
    position: null,
    sending: progress,
    receiving: { claims: 0, slices: 0, current: 0, refused: 9, compared: 3, comparedAgoMs: 40, differed: 1, claimsIgnored: 2 },
    policies: { own: { up: everything, down: '[]' }, other: { up: '[]', down: everything } },
  });
});

test('children are reported in the order of their names, including children that are away', async (t) => {
  const { clock, pushes, link, report } = setUp();
  pushes.publish({ links: [link('child/west', 'c8', '12'), link('parent', 'c0', '')] });
  const session = {
    progress: undefined,
    received: { compared: 0, comparedMs: 0, differed: 0, refused: 0, claimsIgnored: 0 },
    otherPolicy: undefined,
  };
  const here = { cacheId: 'c7', term: 1, agent: 'strata', peer: '10.0.0.7', sinceMs: clock.now() - 60, session };

  const { children } = await report({
    children: [
      { name: 'zone', ...here },
      { name: 'east', ...here },
    ],
  });

  t.deepEqual(
    children.map(({ name, cacheId, agent, connection, position }) => [name, cacheId, agent, connection.kind, position]),
    [
      ['east', 'c7', 'strata', 'connected', null],
      ['west', 'c8', null, 'away', '12'],
      ['zone', 'c7', 'strata', 'connected', null],
    ],
  );
  t.deepEqual(
    children.map(({ policies: { own } }) => own.down),
    [everything, '[]', '[]'],
  );
});
