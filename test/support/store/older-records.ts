/**
 * Records as servers of 27 November 2026 wrote them into etcd. They never change: every later
 * version reads them, or an upgrade forgets who has which shard.
 */
import { childNeighbour } from '../../../src/domain/via.js';
import type { RecordKey } from '../../../src/store/etcd/records.js';
import { shardName } from '../objects.js';

export const olderPrefix = '/cache';

const shard = shardName('amber');
const exports = { shard, resource: { group: 'apis.kcp.io', resource: 'apiexports', identity: '' } };
const instances = { shard, resource: { group: 'machines.svm.io', resource: 'instances', identity: 'f00' } };

/** The text of each key, what it stands for, and the text of its value. */
export const olderRecords: readonly (readonly [text: string, key: RecordKey, value: string])[] = [
  ['/cache.strata/v1/cache', { kind: 'cache' }, '{"cacheId":"c-older","epoch":7000001}'],
  [
    '/cache.strata/v1/shards/amber',
    { kind: 'shard', shard },
    '{"term":1000,"removed":false,"origin":"c-older","process":"process-1000","via":"local","plain":false,"viaSince":0,"session":3}',
  ],
  [
    '/cache.strata/v1/shards/birch',
    { kind: 'shard', shard: shardName('birch') },
    '{"term":1795000000001,"removed":false,"origin":"c-east","process":"p-2","via":"child/east","plain":false,"viaSince":0,"session":0}',
  ],
  [
    '/cache.strata/v1/shards/cedar',
    { kind: 'shard', shard: shardName('cedar') },
    '{"term":9,"removed":true,"origin":"c-older","process":"","plain":false,"viaSince":0,"session":1}',
  ],
  [
    '/cache.strata/v1/slices/amber/apiexports.apis.kcp.io:',
    { kind: 'slice', slice: exports },
    '{"syncedTerm":1000,"everSynced":true,"filterHash":"","cameOver":"","changedMs":1795000000000,"invalidations":2,"invalidatedBy":"s1","isVoid":false,"removal":""}',
  ],
  [
    '/cache.strata/v1/slices/amber/instances.machines.svm.io:f00',
    { kind: 'slice', slice: instances },
    '{"syncedTerm":0,"everSynced":true,"filterHash":"0a","cameOver":"child/east","changedMs":0,"invalidations":0,"invalidatedBy":"","isVoid":true,"removal":"s1"}',
  ],
  [
    '/cache.strata/v1/links/child/east',
    { kind: 'link', neighbour: childNeighbour('east') },
    '{"cacheId":"c-east","position":"7000001.40","staleSince":0,"session":2}',
  ],
  [
    '/cache.strata/v1/links/parent',
    { kind: 'link', neighbour: 'parent' },
    '{"cacheId":"c-root","position":"","staleSince":12,"session":1}',
  ],
];

/** A slice as servers of 25 November 2026 wrote it: the later ones count it as not synced. */
export const firstSlice = '{"syncedTerm":1000,"everSynced":true,"filterHash":"","cameOver":"","changedMs":0,"invalidations":0}';
