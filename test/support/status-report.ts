/** A status report with a shard of every kind of connection, and slices in every state. */
import { parseShardName } from '../../src/domain/shard.js';
import type { ShardStatus, SliceStatus, StatusReport } from '../../src/domain/status.js';

export function aStatusReport(shards: readonly ShardStatus[] = [pushed, away, plain, removed]): StatusReport {
  return {
    cache: { id: 'c-1', version: '0.1.0', epoch: 1_234_567, resourceVersion: '1234567000000000042', ready: true },
    shards,
  };
}

function aSlice(slice: Partial<SliceStatus> = {}): SliceStatus {
  return {
    group: 'apis.kcp.io',
    resource: 'apiexports',
    identity: '',
    synced: true,
    stated: 'current',
    objects: 12,
    bytes: 30_211,
    changedAgoMs: 900,
    lagMs: 3,
    sourceConnected: true,
    ...slice,
  };
}

const pushed: ShardStatus = {
  shard: parseShardName('amber')!,
  incarnation: 1_763_700_000_000,
  removed: false,
  connection: { kind: 'connected', forMs: 192_000, peer: '10.0.0.7' },
  slices: [
    aSlice(),
    aSlice({
      group: 'machines.svm.io',
      resource: 'instances',
      identity: 'abcdef0123456789',
      synced: false,
      stated: 'never',
      lagMs: 64_000,
    }),
    aSlice({ group: '', resource: 'namespaces', sourceConnected: false, objects: 0, bytes: 0, changedAgoMs: null }),
  ],
};

const away: ShardStatus = {
  shard: parseShardName('birch')!,
  incarnation: 1_763_600_000_000,
  removed: false,
  connection: { kind: 'away', forMs: 7_200_000 },
  slices: [aSlice({ stated: 'earlier', lagMs: null, sourceConnected: null, changedAgoMs: 86_400_000 * 3 })],
};

const plain: ShardStatus = {
  shard: parseShardName('cedar')!,
  removed: false,
  connection: { kind: 'plain' },
  slices: [aSlice({ stated: 'assumed', lagMs: null, sourceConnected: null, bytes: 5 * 1024 ** 2 })],
};

const removed: ShardStatus = {
  shard: parseShardName('dogwood')!,
  incarnation: 1_763_500_000_001,
  removed: true,
  connection: { kind: 'away', forMs: 60_000 },
  slices: [],
};
