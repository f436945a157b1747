import { bucketSet } from '../../../src/domain/slices/buckets.js';
import { test } from '../../support/test.js';
import type { BatchItem } from '../../../src/store/batch-item.js';
import type { Decided } from '../../../src/store/sqlite/committer-messages.js';
import { packBatch, unpackBatch } from '../../../src/store/sqlite/wire-batch.js';
import { packDecisions, unpackDecisions } from '../../../src/store/sqlite/wire-decisions.js';
import { childNeighbour } from '../../../src/domain/via.js';
import { aShardState } from '../../support/intake/fake-pushes.js';
import { aDelete, aPut, shardName } from '../../support/objects.js';
import {
  aBegin,
  aClaim,
  aClear,
  aCompare,
  anInvalidation,
  aDrop,
  aKeep,
  aMeet,
  anAssume,
  anEnd,
  aReach,
  aRetract,
  aSlice,
  anUpsert,
} from '../../support/pushes.js';

const eu = childNeighbour('eu');

const resume = (push: BatchItem, walk: number): BatchItem => {
  if (push.kind !== 'end' && push.kind !== 'clear' && push.kind !== 'drop') throw new Error('only sweeps are resumed');
  return { kind: 'resume', push, walk };
};

test('requests reach the committer whole: every kind, in order, bodies byte for byte', (t) => {
  const batch: readonly BatchItem[] = [
    aPut({ name: 'a', namespace: 'x' }, 'absent', { path: 'root:org' }),
    aPut({ name: 'b', identity: 'hash' }, 7),
    aDelete({ name: 'c' }),
    aDelete({ name: 'c', resource: 'others' }, 9),
    aClaim('birch', 1_700_000_000_123),
    aBegin({ shard: 'birch' }, 2),
    anUpsert({ shard: 'birch', name: 'd' }, { path: 'root:org:team', spec: 'ü' }, 3),
    anUpsert({ name: 'e' }),
    aKeep({ name: 'f' }, 4),
    aRetract({ name: 'g' }, 5),
    anInvalidation({ resource: 'others' }, 6),
    anEnd({ identity: 'hash' }, 7),
    resume(anEnd({ shard: 'cedar' }, 8), 1),
    { ...aPut({ name: 'taken' }, 'absent'), takes: true },
    { ...aDelete({ name: 'taken' }), takes: true },
    { ...aPut({ name: 'own' }, 'absent'), bySource: true },
    { ...aDelete({ name: 'own' }), bySource: true },
    aClaim({ shard: 'birch', via: eu, removed: true }),
    aClaim({ via: 'parent' }),
    { kind: 'acquire', shard: shardName('cedar'), process: 'p-1', term: 7, nowMs: 1_700_000_000_789 },
    aBegin({ shard: 'birch' }, eu),
    anUpsert({ shard: 'birch' }, {}, eu),
    aKeep({}, 'parent'),
    aRetract({}, eu),
    anInvalidation({}, eu),
    aCompare('0'.repeat(24), {}, eu),
    anEnd({ shard: 'birch' }, eu, 'the hash'),
    resume(anEnd({ shard: 'birch' }, 'parent', 'another'), 2),
    {
      kind: 'end',
      slice: aSlice(),
      by: { kind: 'link', neighbour: eu },
      filterHash: 'the hash',
      buckets: bucketSet([1, 254]),
      term: 1_795_000_000_000,
    },
    aMeet('0123456789abcdef', eu),
    aMeet('fedcba9876543210'),
    aReach('1234567000000000009'),
    aReach('', eu),
    anAssume('cedar'),
    { kind: 'leave', neighbour: eu },
    aClear('amber', { fence: true, nowMs: 1_700_000_000_456 }),
    aClear('birch', { fence: false, nowMs: 0 }),
    aClear('cedar', { fence: false, through: 12 }),
    aClear('cedar', { fence: false, through: 0 }),
    { ...aClear('cedar', { fence: false }), onlyRemoved: true } as BatchItem,
    { ...aClear('cedar', { fence: true, through: 7 }), onlyRemoved: true } as BatchItem,
    resume(aClear('cedar', { fence: true }), 2),
    resume(aClear('cedar', { fence: false }), 3),
    aDrop({ identity: 'hash' }, 7),
    resume(aDrop(), 900_000),
  ];

  const packed = packBatch(batch);
  const crossed = unpackBatch(
    structuredClone(packed, { transfer: [packed.cuts.buffer, packed.numbers.buffer, packed.bytes.buffer] as ArrayBuffer[] }),
  );

  t.deepEqual(crossed.map(comparable), batch.map(comparable));
  t.is(packed.resources.length, 3, 'a type crosses once');
  t.deepEqual(unpackBatch(packBatch([])), []);
});

test('decisions return from the committer whole', (t) => {
  const decided: readonly Decided[] = [
    { kind: 'written', revision: 900_000_000_000, replaced: 7 },
    { kind: 'refused', why: 'exists' },
    { kind: 'refused', why: 'absent' },
    { kind: 'refused', why: 'changed' },
    { kind: 'unchanged' },
    { kind: 'refused', why: 'elsewhere' },
    { kind: 'fenced', holder: aShardState(shardName('amber'), 1_700_000_000_123, { via: childNeighbour('eu') }) },
    { kind: 'fenced', holder: aShardState(shardName('amber'), 5, { removed: true }) },
    { kind: 'fenced', holder: undefined },
    { kind: 'acquired', term: 1_700_000_000_124 },
    { kind: 'differs', digest: '0'.repeat(24), isCurrent: true },
    { kind: 'bound', name: 'eu' },
    { kind: 'full' },
    { kind: 'unbegun' },
    { kind: 'swept', removed: 3 },
    { kind: 'partial', removed: 256, walk: 900_000 },
  ];

  t.deepEqual(unpackDecisions(structuredClone(packDecisions(decided))), decided);
});

/** Converts bytes to a plain array, so that a view equals a whole buffer. */
function comparable(asked: BatchItem): unknown {
  return 'body' in asked ? { ...asked, body: { ...asked.body, bytes: [...asked.body.bytes] } } : asked;
}
