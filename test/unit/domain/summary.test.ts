import { test } from '../../support/test.js';
import { inBuckets, noBuckets } from '../../../src/domain/slices/buckets.js';
import type { StoredObject } from '../../../src/domain/object.js';
import { Summary } from '../../../src/domain/slices/summary.js';
import { aKey } from '../../support/objects.js';

function anObject(name: string, text: string, version = 'v1'): StoredObject {
  const marks = { metadataStart: 0, metadataEnd: 0, annotationsAt: 0, revisionAt: 0 };
  return { key: aKey({ name }), body: { bytes: Buffer.from(text), version, marks }, revision: 1, resourceVersion: '1' } as StoredObject;
}

function aSummary(...pages: readonly (readonly StoredObject[])[]): Summary {
  const summary = new Summary();
  for (const page of pages) summary.add(page);
  return summary;
}

function summaryOf(...pages: readonly (readonly StoredObject[])[]): string {
  return Buffer.from(aSummary(...pages).digests()).toString('hex');
}

test('equal content has the same summary, in whatever order it is read; other content has another', (t) => {
  const [one, two] = [anObject('one', 'body'), anObject('two', 'body')];
  const others = [
    [],
    [one],
    [one, two, two],
    [anObject('one', 'bod'), anObject('two', 'ybody')],
    [anObject('on', 'body'), two],
    [anObject('one', 'body', 'v2'), two],
    [anObject('onev1', 'body', ''), two],
  ];

  t.is(summaryOf([one, two]), summaryOf([one], [], [two]));
  t.is(new Set([[one, two], ...others].map((objects) => summaryOf(objects))).size, others.length + 1);
});

test('two summaries differ only in the buckets of objects that differ, whatever number of digests the other end has', (t) => {
  for (const count of [1, 40, 1_000, 20_000]) {
    const all = Array.from({ length: count }, (_, i) => anObject(`o-${i}`, 'body'));
    const changed = all.filter((_, i) => i % 1_000 === 0).map(({ key }) => anObject(key.name, 'another'));
    const names = new Set(changed.map(({ key }) => key.name));
    const other = all.map((object) => changed.find(({ key }) => key.name === object.key.name) ?? object);

    const digests = aSummary(other).digests();
    const differing = aSummary(all).differing(digests);

    t.is(aSummary(other).differing(digests), noBuckets);
    if (differing === undefined) throw new Error('they are digests');
    const isSent = inBuckets(differing);
    t.true(changed.every(({ key }) => isSent(key)));
    const [each, sent] = [256 / (digests.length / 32), all.filter(({ key }) => isSent(key)).length];
    t.true(digests.length <= 32 * 256 && digests.length <= Math.max(32, 2 * count), `${digests.length} bytes for ${count}`);
    t.true(sent <= 2 * names.size * Math.max(32, (each * count) / 256), `${sent} of ${count} are sent for ${names.size}`);
  }
});

test('bytes that are no list of digests cannot be compared', (t) => {
  for (const length of [0, 1, 8, 16, 31, 33, 96, 512 * 32])
    t.is(aSummary([anObject('one', 'body')]).differing(new Uint8Array(length)), undefined);
});
