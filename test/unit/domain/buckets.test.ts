import { test } from '../../support/test.js';
import { bucketCount, bucketOf, bucketSet, inBuckets, noBuckets, parseBucketSet } from '../../../src/domain/slices/buckets.js';
import { aKey } from '../../support/objects.js';

test('every cache puts a key into the same bucket, whatever its version', (t) => {
  const keys = [
    ['acme', '', 'one'],
    ['acme', '', 'two'],
    ['1gwn3f7k9zq2', 'default', 'api-42'],
    ['', '', ''],
    ['\u{1f600}', 'ä', 'z'],
  ] as const;

  t.deepEqual(
    keys.map(([cluster, namespace, name]) => bucketOf({ cluster, namespace, name })),
    [131, 49, 185, 153, 175],
  );
});

test('similar keys are spread over all buckets', (t) => {
  const counts = Array.from({ length: bucketCount }, () => 0);
  for (let i = 0; i < 100 * bucketCount; i += 1) {
    const bucket = bucketOf(aKey({ name: `export-${i}` }));
    counts[bucket] = (counts[bucket] ?? 0) + 1;
  }

  t.true(Math.min(...counts) > 50 && Math.max(...counts) < 200, `${Math.min(...counts)} to ${Math.max(...counts)}`);
});

test('a set contains the buckets from which it was made, and other texts are not parsed as a set', (t) => {
  const key = aKey();

  t.true(inBuckets(bucketSet([bucketOf(key)]))(key));
  t.false(inBuckets(bucketSet(Array.from({ length: bucketCount }, (_, i) => i).filter((i) => i !== bucketOf(key))))(key));
  t.is(bucketSet([]), noBuckets);
  t.is(parseBucketSet(bucketSet([0, 9, 255])), bucketSet([255, 9, 0]));
  for (const text of ['', '0', 'g'.repeat(64), '0'.repeat(63), 'A'.repeat(64)]) t.is(parseBucketSet(text), undefined);
});
