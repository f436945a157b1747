import { test } from '../../support/test.js';
import { keptNames, parseKeptNames, namesOfType, type NamesOfType } from '../../../src/domain/kept-names.js';
import { compose } from '../../../src/json/compose.js';
import { keptIn, listedIn, withKept, withoutNames } from '../../../src/json/kept-members.js';
import { scanObject } from '../../../src/json/object-text.js';
import type { Body } from '../../../src/domain/object.js';
import { textOf as readText } from '../../support/intake/bodies.js';
import { aKey } from '../../support/objects.js';

const key = aKey();
const parsed = (...texts: string[]) => parseKeptNames(texts) ?? [];
const listed = keptNames({
  annotations: parsed('apiexports.apis.kcp.io=x.io/a', 'apiexports.apis.kcp.io=x.io/b'),
  labels: parsed('apiexports.apis.kcp.io=x.io/l'),
});
const names = namesOfType(listed, key.resource) as NamesOfType;

function aBody(metadata: string): Body {
  const text = `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{${metadata}},"spec":{"n":1.0}}`;
  const stamp = { place: key, apiVersion: 'apis.kcp.io/v1alpha2', version: 'v1alpha2', metadata: {} };
  return compose(scanObject(Buffer.from(text), 100), stamp);
}

const textOf = ({ bytes }: Body): string => Buffer.from(bytes).toString();

test('kept members are inserted and removed byte for byte, wherever annotations and labels are, and a revision still fits', (t) => {
  for (const metadata of [
    '"name":"one"',
    '"name":"one","annotations":{}',
    '"name":"one","annotations":null',
    '"annotations":{"x":"y"},"name":"one","labels":{"p":"q"}',
    '"labels":{"p":"q"},"name":"one","resourceVersion":"7"',
    '"name" : "one", "labels" : {"p" : "q" } ',
  ]) {
    const body = aBody(metadata);
    t.is(keptIn(body, names), undefined);
    const kept = {
      annotations: new Map([
        ['x.io/a', 'é"\\'],
        ['x.io/b', ''],
      ]),
      labels: new Map([['x.io/l', 'v']]),
    };

    const copy = withKept(body, kept);

    t.deepEqual(keptIn(copy, names), kept);
    t.is(textOf(withKept(body, keptIn(copy, names))), textOf(copy));
    t.deepEqual(listedIn(copy, names), kept);
    t.is(textOf(withKept(copy, { annotations: new Map([['x.io/a', 'other']]), labels: new Map() })), textOf(copy), 'what it has stays');
    const own = aBody(`"annotations":{"x.io/a":"own"},"name":"one"`);
    t.deepEqual(keptIn(withKept(own, kept), names), { annotations: new Map([['x.io/b', '']]), labels: new Map([['x.io/l', 'v']]) });
    t.is(textOf(withoutNames(copy, names)), textOf(body));
    for (const each of [copy, withoutNames(copy, names)]) {
      const { metadata: read } = JSON.parse(readText({ body: each }, '42')) as {
        metadata: { resourceVersion: string };
      };
      t.is(read.resourceVersion, '42');
      const { metadataStart, metadataEnd, annotationsAt } = each.marks;
      const before = (end: number, start = 0): string => Buffer.from(each.bytes.subarray(start, end)).toString();
      t.is(typeof JSON.parse(before(metadataEnd, metadataStart)), 'object');
      t.true(before(annotationsAt).endsWith('{'));
    }
  }
});

test('labels are removed as a whole if all are kept, and the shard’s own labels stay', (t) => {
  t.is(textOf(withoutNames(aBody('"name":"one","labels":{"x.io/l":"v"}'), names)), textOf(aBody('"name":"one"')));
  t.is(
    textOf(withoutNames(aBody('"name":"one","annotations":{"x.io/b":"v","z":"1"}'), names)),
    textOf(aBody('"name":"one","annotations":{"z":"1"}')),
  );
});
