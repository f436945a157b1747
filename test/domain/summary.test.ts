import test from 'ava';
import type { StoredObject } from '../../src/domain/object.js';
import { Summary } from '../../src/domain/summary.js';
import { aKey } from '../support/objects.js';

function anObject(name: string, text: string, version = 'v1'): StoredObject {
  const marks = { metadataStart: 0, metadataEnd: 0, annotationsAt: 0, revisionAt: 0 };
  return { key: aKey({ name }), body: { bytes: Buffer.from(text), version, marks }, revision: 1, resourceVersion: '1' } as StoredObject;
}

function summaryOf(...pages: readonly (readonly StoredObject[])[]): string {
  const summary = new Summary();
  for (const page of pages) summary.add(page);
  return summary.format();
}

test('what is the same has one summary, however it was read; what is not has another', (t) => {
  const [one, two] = [anObject('one', 'body'), anObject('two', 'body')];
  const others = [
    [],
    [one],
    [two, one],
    [one, two, two],
    [anObject('one', 'bod'), anObject('two', 'ybody')],
    [anObject('on', 'body'), two],
    [anObject('one', 'body', 'v2'), two],
    [anObject('onev1', 'body', ''), two],
  ];

  t.is(summaryOf([one, two]), summaryOf([one], [], [two]));
  t.is(new Set([[one, two], ...others].map((objects) => summaryOf(objects))).size, others.length + 1);
});
