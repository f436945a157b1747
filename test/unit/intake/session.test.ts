import { test } from '../../support/test.js';
import { protocolVersion, type FrameOf } from '../../../src/frames/frame.js';
import { byeTo, parsePusherHello } from '../../../src/intake/push/session.js';
import { shardName } from '../../support/objects.js';
import { aShardState } from '../../support/intake/fake-pushes.js';

const amber = { shard: shardName('amber'), process: 'process-1' };

function hello(overrides: Partial<FrameOf<'hello'>> = {}): FrameOf<'hello'> {
  return {
    kind: 'hello',
    protocol: protocolVersion,
    role: 'shard',
    name: 'amber',
    process: 'process-1',
    term: 0,
    takesOver: false,
    route: [],
    agent: 'test',
    credit: undefined,
    limits: undefined,
    ...overrides,
  };
}

test('a session begins with a hello that this cache and the certificate allow', (t) => {
  const table: readonly (readonly [string, Partial<FrameOf<'hello'>>, string])[] = [
    ['an older protocol', { protocol: 0 }, 'unsupported'],
    ['a role that is not taken', { role: 'cache' }, 'unsupported'],
    ['no name of a shard', { name: 'root:org' + '/'.repeat(3) }, 'protocol'],
    ['the name of another shard', { name: 'birch' }, 'forbidden'],
    ['no process', { process: '' }, 'protocol'],
  ];
  for (const [what, overrides, reason] of table)
    t.like(
      parsePusherHello(hello(overrides), (shard) => shard === 'amber'),
      { kind: 'bye', reason },
      what,
    );
});

test('a hello gives a pusher’s shard, process, term and position, whatever newer protocol it speaks', (t) => {
  const coming = parsePusherHello(hello({ protocol: 9, term: 3, takesOver: true, position: '7' }), () => true);

  t.deepEqual(coming, { kind: 'coming', ...amber, term: 3, takesOver: true, position: '7' });
});

test('a pusher that lost its shard is fenced for good; one without room or with its shard elsewhere may come back', (t) => {
  const holder = aShardState(shardName('amber'), 7);
  t.like(byeTo(amber, { kind: 'fenced', holder }), { reason: 'fenced', retryAfterMs: undefined });
  t.like(byeTo(amber, { kind: 'fenced', holder: { ...holder, removed: true } }), { reason: 'fenced', retryAfterMs: undefined });
  t.like(byeTo(amber, { kind: 'fenced', holder: undefined }), { reason: 'fenced', retryAfterMs: undefined });
  t.like(byeTo(amber, { kind: 'fenced', holder: { ...holder, process: amber.process } }), { reason: 'replaced', retryAfterMs: 100 });

  const refusal = { reason: 'ServiceUnavailable', message: 'full' } as const;
  t.deepEqual(byeTo(amber, { kind: 'unavailable', refusal }), { kind: 'bye', reason: 'unavailable', message: 'full', retryAfterMs: 1000 });
});
