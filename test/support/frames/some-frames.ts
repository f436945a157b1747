/** Frames for tests: a typical one of each kind, and arbitrary ones. */
import { bucketSet } from '../../../src/domain/slices/buckets.js';
import fc from 'fast-check';
import { byeReasons, type ByeReason } from '../../../src/frames/bye.js';
import type { Frame, FrameOf } from '../../../src/frames/frame.js';
import { parseClusterName, type ClusterName } from '../../../src/domain/cluster.js';
import { parseShardName, type ShardName } from '../../../src/domain/shard.js';
import type { Slice } from '../../../src/domain/slice.js';
import { anyCharacter } from '../any-character.js';

function shardNamed(text: string): ShardName {
  const name = parseShardName(text);
  if (name === undefined) throw new Error(`${text} is no shard name`);
  return name;
}

function clusterNamed(text: string): ClusterName {
  const name = parseClusterName(text);
  if (name === undefined) throw new Error(`${text} is no logical cluster`);
  return name;
}

const amber = shardNamed('amber');

export const exportsOfAmber: Slice = { shard: amber, resource: { group: 'apis.kcp.io', resource: 'apiexports', identity: '' } };
const instancesOfAmber: Slice = { shard: amber, resource: { group: '', resource: 'instances', identity: 'a1b2c3' } };

export function aPut(change: Partial<FrameOf<'put'>> = {}): FrameOf<'put'> {
  const key = { cluster: '1k2j3h4g', namespace: '', name: 'today' };
  const body = Buffer.from('{"kind":"APIExport"}');
  return {
    kind: 'put',
    sequence: 2,
    slice: exportsOfAmber,
    version: 'v1alpha2',
    objects: [{ ...key, sourceVersion: '1001', body }],
    ...change,
  };
}

/**
 * One frame of each kind, in the order of their numbers, and a second where a kind has two forms;
 * then later additions.
 */
export const someFrames: readonly Frame[] = [
  {
    kind: 'hello',
    protocol: 1,
    role: 'shard',
    name: 'amber',
    process: 'process-1',
    term: 1_795_000_000_000,
    takesOver: false,
    route: [],
    agent: 'strata 0.1.0',
    credit: undefined,
    limits: undefined,
  },
  {
    kind: 'hello',
    protocol: 1,
    role: 'cache',
    name: 'cache-birch',
    process: '',
    term: 7,
    takesOver: false,
    route: ['cache-birch', 'cache-root'],
    agent: 'strata 0.1.0',
    credit: { mutations: 2048, bytes: 8_388_608 },
    limits: { frameBytesMax: 4_194_304, frameMutationsMax: 512, bodyBytesMax: 3_145_728 },
  },
  {
    kind: 'welcome',
    protocol: 1,
    cacheId: 'cache-root',
    epoch: 1_234_567,
    term: 1_795_000_000_001,
    credit: { mutations: 2048, bytes: 8_388_608 },
    limits: { frameBytesMax: 4_194_304, frameMutationsMax: 512, bodyBytesMax: 3_145_728 },
  },
  aPut({
    objects: [
      { cluster: '1k2j3h4g', namespace: '', name: 'today', sourceVersion: '1001', body: Buffer.from('{"kind":"APIExport"}') },
      { cluster: 'root', namespace: 'default', name: 'grün', sourceVersion: '1002', body: undefined },
    ],
  }),
  {
    kind: 'delete',
    sequence: 4,
    slice: exportsOfAmber,
    keys: [
      { cluster: '1k2j3h4g', namespace: '', name: 'today' },
      { cluster: 'root', namespace: 'default', name: '__proto__' },
    ],
  },
  { kind: 'begin', sequence: 1, slice: exportsOfAmber, revision: '1003' },
  { kind: 'end', sequence: 300, slice: exportsOfAmber, revision: '1003', count: 70_000, filterHash: '' },
  { kind: 'end', sequence: 301, slice: exportsOfAmber, revision: '1003', count: 0, filterHash: 'e1' },
  { kind: 'resync', slice: exportsOfAmber, reason: 'a gap in the sequence' },
  { kind: 'progress', sequence: 302, position: '1042' },
  {
    kind: 'claim',
    shard: amber,
    term: 1_795_000_000_000,
    process: 'process-1',
    removed: true,
    origin: 'cache-1',
    path: ['cache-1', 'cache-0'],
    reached: true,
    isYours: false,
    held: false,
  },
  { kind: 'route', route: ['cache-birch', 'cache-root'] },
  { kind: 'policy', up: '[]', down: '[{"types":["*"]}]' },
  { kind: 'digest', sequence: 303, slice: exportsOfAmber, value: 'd1' },
  { kind: 'ack', sequence: 255, credit: { mutations: 2048, bytes: 8_388_608 } },
  { kind: 'refuse', sequence: 3, reason: 'Invalid', message: 'metadata.name: it is not "today"' },
  {
    kind: 'status',
    freshness: [{ slice: exportsOfAmber, connected: true, synced: false, lagMs: 12, whole: true }],
    withdrawn: [exportsOfAmber],
  },
  { kind: 'bye', reason: 'shutdown', message: 'the server is stopping', retryAfterMs: 0 },
  { kind: 'bye', reason: 'fenced', message: 'a newer term has the shard', retryAfterMs: undefined },
  {
    kind: 'resume',
    position: '1042',
    held: [
      { slice: exportsOfAmber, filterHash: 'e1', syncedTerm: 1_795_000_000_000 },
      { slice: instancesOfAmber, filterHash: '', syncedTerm: 0 },
    ],
    isLast: true,
  },
  aPut({ sequence: 304, position: '1043' }),
  { kind: 'delete', sequence: 305, slice: exportsOfAmber, keys: [{ cluster: 'root', namespace: '', name: 'today' }], position: '1044' },
  { kind: 'ack', sequence: 306, credit: { mutations: 2048, bytes: 8_388_608 }, position: '1045' },
  {
    kind: 'hello',
    protocol: 1,
    role: 'shard',
    name: 'amber',
    process: 'process-1',
    term: 1_795_000_000_000,
    takesOver: false,
    route: [],
    agent: 'strata 0.1.0',
    credit: undefined,
    limits: undefined,
    position: '1045',
  },
  { kind: 'heartbeat', number: 12 },
  {
    kind: 'report',
    sequence: 304,
    freshness: [{ slice: exportsOfAmber, connected: true, synced: false, lagMs: 12, whole: true }],
    heartbeat: 12,
    isAll: false,
    isComplete: true,
  },
  { kind: 'begin', sequence: 1, slice: exportsOfAmber, revision: '1003', compares: true },
  { kind: 'end', sequence: 301, slice: exportsOfAmber, revision: '1003', count: 0, filterHash: 'e1', buckets: bucketSet([0, 255]) },
  { kind: 'end', sequence: 302, slice: exportsOfAmber, revision: '1003', count: 7, filterHash: 'e1', term: 1_795_000_000_000 },
  { kind: 'summary', slice: exportsOfAmber, sequence: 1, digests: Uint8Array.of(1, 2, 3) },
  { kind: 'standby' },
  { kind: 'types', slices: [exportsOfAmber], withdrawn: [instancesOfAmber], isAll: true },
  { kind: 'swept', slice: exportsOfAmber, keys: [{ cluster: 'acme', namespace: '', name: 'one' }] },
  {
    kind: 'claim',
    shard: amber,
    term: 7,
    process: 'process-7',
    removed: false,
    origin: 'cache-1',
    path: ['cache-1'],
    reached: true,
    isYours: true,
    held: true,
  },
  { kind: 'clusterBegin', sequence: 5, slice: exportsOfAmber, cluster: clusterNamed('acme') },
  { kind: 'clusterEnd', sequence: 9, slice: exportsOfAmber, cluster: clusterNamed('acme'), count: 3 },
  { kind: 'clusterKeep', sequence: 5, slice: exportsOfAmber, cluster: clusterNamed('acme') },
  { kind: 'synced', slices: [exportsOfAmber] },
];

/**
 * The frame with its bodies as plain bytes, so that two frames compare equal whatever view their
 * bodies have.
 */
export function plain(frame: Frame): unknown {
  if (frame.kind === 'summary') return { ...frame, digests: Buffer.from(frame.digests).toString('hex') };
  if (frame.kind !== 'put') return frame;
  return {
    ...frame,
    objects: frame.objects.map((object) => ({ ...object, body: object.body && Buffer.from(object.body).toString('hex') })),
  };
}

const text = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 80 }),
  fc.constantFrom('', '__proto__', 'constructor', 'prototype', 'toString', 'x'.repeat(1024)),
);
const count = fc.oneof(fc.nat(), fc.maxSafeNat());
const positive = fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }));
const shard = fc.stringMatching(/^[a-z0-9:-]{1,61}$/).map(shardNamed);
const resource = fc.record({
  group: fc.oneof(fc.constant(''), fc.stringMatching(/^[a-z0-9.-]{1,60}$/)),
  resource: fc.oneof(fc.constant('constructor'), fc.stringMatching(/^[a-z0-9-]{1,60}$/)),
  identity: fc.stringMatching(/^[a-f0-9]{0,64}$/),
});
const slice = fc.record({ shard, resource });
const cluster = fc.constantFrom('acme', 'system:shard', '1k2j3h4g').map(clusterNamed);
const id = fc.stringMatching(/^[a-z0-9-]{0,64}$/);
const list = <T>(one: fc.Arbitrary<T>): fc.Arbitrary<readonly T[]> => fc.array(one, { maxLength: 20 });
const credit = fc.record({ mutations: count, bytes: count });
const limits = fc.record({ frameBytesMax: positive, frameMutationsMax: positive, bodyBytesMax: positive });
const freshness = list(fc.record({ slice, connected: fc.boolean(), synced: fc.boolean(), lagMs: count, whole: fc.boolean() }));
const key = { cluster: text, namespace: text, name: fc.oneof(text, fc.constant('n'.repeat(70_000))) };
const body = fc.option(fc.uint8Array({ maxLength: 400 }), { nil: undefined });

export const anyFrame: fc.Arbitrary<Frame> = fc.oneof(
  fc.record(
    {
      kind: fc.constant('hello' as const),
      protocol: positive,
      role: fc.constantFrom('shard' as const, 'cache' as const),
      name: text,
      process: text,
      term: count,
      takesOver: fc.boolean(),
      route: list(id),
      agent: text,
      credit: fc.option(credit, { nil: undefined }),
      limits: fc.option(limits, { nil: undefined }),
      position: text,
    },
    {
      requiredKeys: ['kind', 'protocol', 'role', 'name', 'process', 'term', 'takesOver', 'route', 'agent', 'credit', 'limits'],
    },
  ),
  fc.record({
    kind: fc.constant('welcome' as const),
    protocol: positive,
    cacheId: text,
    epoch: count,
    term: count,
    credit,
    limits,
  }),
  fc.record(
    {
      kind: fc.constant('put' as const),
      sequence: positive,
      slice,
      version: text,
      objects: fc.array(fc.record({ ...key, sourceVersion: text, body }), { minLength: 1, maxLength: 20 }),
      position: text,
    },
    { requiredKeys: ['kind', 'sequence', 'slice', 'version', 'objects'] },
  ),
  fc.record(
    {
      kind: fc.constant('delete' as const),
      sequence: positive,
      slice,
      keys: fc.array(fc.record(key), { minLength: 1, maxLength: 20 }),
      position: text,
    },
    { requiredKeys: ['kind', 'sequence', 'slice', 'keys'] },
  ),
  fc.record(
    { kind: fc.constant('begin' as const), sequence: positive, slice, revision: text, compares: fc.constant(true) },
    { requiredKeys: ['kind', 'sequence', 'slice', 'revision'] },
  ),
  fc.record(
    {
      kind: fc.constant('end' as const),
      sequence: positive,
      slice,
      revision: text,
      count,
      filterHash: id,
      buckets: fc.constant(bucketSet([7])),
    },
    { requiredKeys: ['kind', 'sequence', 'slice', 'revision', 'count', 'filterHash'] },
  ),
  fc.record({ kind: fc.constant('clusterBegin' as const), sequence: positive, slice, cluster }),
  fc.record({ kind: fc.constant('clusterEnd' as const), sequence: positive, slice, cluster, count }),
  fc.record({ kind: fc.constant('clusterKeep' as const), sequence: positive, slice, cluster }),
  fc.record({ kind: fc.constant('standby' as const) }),
  fc.record({ kind: fc.constant('summary' as const), slice, sequence: positive, digests: fc.uint8Array({ maxLength: 64 }) }),
  fc.record({ kind: fc.constant('types' as const), slices: list(slice), withdrawn: list(slice), isAll: fc.boolean() }),
  fc.record({ kind: fc.constant('synced' as const), slices: list(slice) }),
  fc.record({ kind: fc.constant('swept' as const), slice, keys: fc.array(fc.record(key), { minLength: 1, maxLength: 20 }) }),
  fc.record({ kind: fc.constant('resync' as const), slice, reason: text }),
  fc.record({ kind: fc.constant('progress' as const), sequence: positive, position: text }),
  fc.record({
    kind: fc.constant('claim' as const),
    shard,
    term: positive,
    process: text,
    removed: fc.boolean(),
    origin: id,
    path: list(id),
    reached: fc.boolean(),
    isYours: fc.boolean(),
    held: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('route' as const), route: list(id) }),
  fc.record({ kind: fc.constant('policy' as const), up: text, down: text }),
  fc.record({ kind: fc.constant('digest' as const), sequence: positive, slice, value: text }),
  fc.record(
    { kind: fc.constant('ack' as const), sequence: count, credit, position: text },
    { requiredKeys: ['kind', 'sequence', 'credit'] },
  ),
  fc.record({ kind: fc.constant('refuse' as const), sequence: positive, reason: text, message: text }),
  fc.record({ kind: fc.constant('status' as const), freshness, withdrawn: list(slice) }),
  fc.record({ kind: fc.constant('heartbeat' as const), number: positive }),
  fc.record({
    kind: fc.constant('report' as const),
    sequence: positive,
    freshness,
    heartbeat: count,
    isAll: fc.boolean(),
    isComplete: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant('bye' as const),
    reason: fc.constantFrom(...(Object.keys(byeReasons) as ByeReason[])),
    message: text,
    retryAfterMs: fc.option(count, { nil: undefined }),
  }),
  fc.record({
    kind: fc.constant('resume' as const),
    position: text,
    held: list(fc.record({ slice, filterHash: id, syncedTerm: count })),
    isLast: fc.boolean(),
  }),
);
