import test from 'ava';
import type { Asked } from '../../src/store/sqlite/asked.js';
import type { Decided } from '../../src/store/sqlite/committer-messages.js';
import { packBatch, unpackBatch } from '../../src/store/sqlite/wire-batch.js';
import { packDecisions, unpackDecisions } from '../../src/store/sqlite/wire-decisions.js';
import { aDelete, aPut } from '../support/objects.js';
import { aBegin, aClaim, aClear, aDoubt, aDrop, aKeep, anEnd, aRetract, aState } from '../support/pushes.js';

const resume = (push: Asked, walk: number): Asked => {
  if (push.kind !== 'end' && push.kind !== 'clear' && push.kind !== 'drop') throw new Error('only sweeps are resumed');
  return { kind: 'resume', push, walk };
};

test('what the committer is asked crosses whole: every kind, in order, bodies byte for byte', (t) => {
  const batch: readonly Asked[] = [
    aPut({ name: 'a', namespace: 'x' }, 'absent', { path: 'root:org' }),
    aPut({ name: 'b', identity: 'hash' }, 7),
    aDelete({ name: 'c' }),
    aDelete({ name: 'c', resource: 'others' }, 9),
    aClaim('birch', 1_700_000_000_123),
    aBegin({ shard: 'birch' }, 2),
    aState({ shard: 'birch', name: 'd' }, { path: 'root:org:team', spec: 'ü' }, 3),
    aState({ name: 'e' }),
    aKeep({ name: 'f' }, 4),
    aRetract({ name: 'g' }, 5),
    aDoubt({ resource: 'others' }, 6),
    anEnd({ identity: 'hash' }, 7),
    resume(anEnd({ shard: 'cedar' }, 8), 1),
    aClear('amber', { fence: true, nowMs: 1_700_000_000_456 }),
    aClear('birch', { fence: false, nowMs: 0 }),
    resume(aClear('cedar', { fence: true }), 2),
    resume(aClear('cedar', { fence: false }), 3),
    aDrop({ identity: 'hash' }),
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

test('what the committer has decided crosses whole', (t) => {
  const decided: readonly Decided[] = [
    { kind: 'written', revision: 900_000_000_000, replaced: 7 },
    { kind: 'refused', why: 'exists' },
    { kind: 'refused', why: 'absent' },
    { kind: 'refused', why: 'changed' },
    { kind: 'unchanged' },
    { kind: 'fenced', holder: 1_700_000_000_123, removed: true },
    { kind: 'fenced', holder: 0, removed: false },
    { kind: 'unbegun' },
    { kind: 'swept', removed: 3 },
    { kind: 'partial', removed: 256, walk: 900_000 },
  ];

  t.deepEqual(unpackDecisions(structuredClone(packDecisions(decided))), decided);
});

/** Bytes as a plain array: a view and a whole buffer are the same to nobody else. */
function comparable(asked: Asked): unknown {
  return 'body' in asked ? { ...asked, body: { ...asked.body, bytes: [...asked.body.bytes] } } : asked;
}
