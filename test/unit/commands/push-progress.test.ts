import { test } from '../../support/test.js';
import type { SliceProgress } from '../../../src/sender/sender-state.js';
import { formatProgress } from '../../../src/commands/terminal-text.js';
import { shardName } from '../../support/objects.js';

function slices(count: number, phase: SliceProgress['phase'], objects: number): readonly SliceProgress[] {
  const slice = { shard: shardName('amber'), resource: { group: 'apis.kcp.io', resource: 'apiexports', identity: '' } };
  const none = { mutations: 0, bytes: 0 };
  return Array.from({ length: count }, () => ({
    slice,
    phase,
    connected: true,
    objects,
    unacknowledged: none,
    refused: 0,
    lagMs: 0,
    whole: true,
  }));
}

test('progress is one line: types synced, objects sent, and refusals only if there are any', (t) => {
  const some = [...slices(12, 'synced', 100), ...slices(5, 'syncing', 3_000), ...slices(1, 'waiting', 0)];

  t.is(formatProgress({ slices: some, refused: 0 }), '12 of 18 types synced, 16,200 objects sent');
  t.is(formatProgress({ slices: some, refused: 1_234_567 }), '12 of 18 types synced, 16,200 objects sent, 1,234,567 refused');
  t.is(formatProgress({ slices: slices(1, 'synced', 1), refused: 0 }), '1 of 1 types synced, 1 object sent');
});
