/**
 * A status report with a shard of every kind of connection, slices in every state, and neighbours
 * that are connected and away.
 */
import { parseShardName } from '../../src/domain/shard.js';
import type {
  CertificateStatus,
  ChildStatus,
  LinkStatus,
  ParentStatus,
  ShardStatus,
  SliceStatus,
  StatusReport,
  TreeStatus,
} from '../../src/domain/status.js';

export function aStatusReport(shards: readonly ShardStatus[] = [pushed, away, plain, removed, behind]): StatusReport {
  return {
    cache: { id: 'c-1', version: '0.1.0', epoch: 1_234_567, resourceVersion: '1234567000000000042', ready: true },
    tree: aRoot,
    certificates: [],
    shards,
    kept: [],
  };
}

/** A certificate status; the report is of 22 November 2026. */
export function aCertificate(use: string, daysLeft: number): CertificateStatus {
  const notAfter = new Date(Date.UTC(2026, 10, 22 + daysLeft)).toISOString();
  return { use, file: `/etc/strata/${use}.crt`, subject: `CN=${use}`, notAfter, expiresInMs: daysLeft * 86_400_000 };
}

export function aTreeStatus(tree: Partial<TreeStatus> = {}): TreeStatus {
  return {
    name: 'eu-1',
    route: ['c-1', 'c-0'],
    hops: 1,
    complete: true,
    parent: aParentStatus(),
    children: [aChildStatus(), { ...aChildStatus(awayLink), name: 'west', agent: null }],
    ...tree,
  };
}

export function aParentStatus(parent: Partial<ParentStatus> = {}): ParentStatus {
  return { url: 'https://root:6443', failures: 0, message: null, ...aLink, ...parent };
}

export function aChildStatus(child: Partial<ChildStatus> = {}): ChildStatus {
  return { name: 'east', agent: 'strata 0.1.0', ...aLink, cacheId: 'c-7', ...child };
}

const everything = '[{"types":["*"]}]';

const aLink: LinkStatus = {
  cacheId: 'c-0',
  connection: { kind: 'connected', forMs: 192_000, peer: 'root:6443' },
  position: '1234567000000000041',
  sending: { slices: 14, current: 12, behind: 3, lagMs: 2_000, resynced: 1, refused: 0 },
  receiving: { claims: 1, slices: 3, current: 3, refused: 2, compared: 9, comparedAgoMs: 41_000, differed: 1, claimsIgnored: 3 },
  policies: { own: { up: everything, down: everything }, other: { up: everything, down: '[]' } },
};

const awayLink: LinkStatus = {
  cacheId: 'c-8',
  connection: { kind: 'away', forMs: 7_200_000 },
  position: null,
  sending: null,
  receiving: { claims: 1, slices: 0, current: 0, refused: 0, compared: 0, comparedAgoMs: null, differed: 0, claimsIgnored: 0 },
  policies: { own: { up: '[]', down: '[]' }, other: null },
};

const aRoot: TreeStatus = { name: null, route: ['c-1'], hops: 0, complete: true, parent: null, children: [] };

export function aSlice(slice: Partial<SliceStatus> = {}): SliceStatus {
  return {
    group: 'apis.kcp.io',
    resource: 'apiexports',
    identity: '',
    everSynced: true,
    whole: true,
    syncedIn: 'this-term',
    current: null,
    objects: 12,
    bytes: 30_211,
    digest: '0123456789ab0123456789ab',
    changedAgoMs: 900,
    lagMs: 3,
    sourceConnected: true,
    held: null,
    ...slice,
  };
}

const pushed: ShardStatus = {
  shard: parseShardName('amber')!,
  via: 'local',
  term: 1_763_700_000_000,
  removed: false,
  connection: { kind: 'connected', forMs: 192_000, peer: '10.0.0.7' },
  standbys: 0,
  unknownTypes: [],
  slices: [
    aSlice(),
    aSlice({
      group: 'machines.svm.io',
      resource: 'instances',
      identity: 'abcdef0123456789',
      everSynced: false,
      whole: false,
      syncedIn: 'never',
      lagMs: 64_000,
    }),
    aSlice({ group: '', resource: 'namespaces', sourceConnected: false, objects: 0, bytes: 0, changedAgoMs: null }),
  ],
};

const away: ShardStatus = {
  shard: parseShardName('birch')!,
  via: 'local',
  term: 1_763_600_000_000,
  removed: false,
  connection: { kind: 'away', forMs: 7_200_000 },
  standbys: 0,
  unknownTypes: [],
  slices: [aSlice({ whole: false, syncedIn: 'earlier', lagMs: null, sourceConnected: null, changedAgoMs: 86_400_000 * 3 })],
};

const plain: ShardStatus = {
  shard: parseShardName('cedar')!,
  via: 'local',
  removed: false,
  connection: { kind: 'plain' },
  standbys: 0,
  unknownTypes: [],
  slices: [aSlice({ syncedIn: 'assumed', lagMs: null, sourceConnected: null, bytes: 5 * 1024 ** 2 })],
};

const behind: ShardStatus = {
  shard: parseShardName('elder')!,
  via: 'child/west',
  term: 1_763_500_000_002,
  removed: false,
  connection: { kind: 'connected', forMs: 5_000, peer: 'west' },
  standbys: 0,
  unknownTypes: [],
  slices: [aSlice({ current: true }), aSlice({ resource: 'apiresourceschemas', current: false, whole: false, syncedIn: 'earlier' })],
};

const removed: ShardStatus = {
  shard: parseShardName('dogwood')!,
  via: null,
  term: 1_763_500_000_001,
  removed: true,
  connection: { kind: 'away', forMs: 60_000 },
  standbys: 0,
  unknownTypes: [],
  slices: [],
};
