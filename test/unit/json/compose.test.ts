import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { compose, type MetadataStamp } from '../../../src/json/compose.js';
import { duplicates } from '../../../src/json/duplicate-members.js';
import { NotJson, scanObject } from '../../../src/json/object-text.js';
import { parseClusterName } from '../../../src/domain/cluster.js';
import { parseShardName } from '../../../src/domain/shard.js';
import { textOf } from '../../support/intake/bodies.js';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const shard = parseShardName('amber')!;
const cluster = parseClusterName('acme')!;

type Read = Readonly<{
  kind?: string;
  metadata: Record<string, unknown> & { name?: string; labels?: unknown; annotations?: Record<string, string>; resourceVersion?: string };
}>;

function composed(text: string, metadata: MetadataStamp = {}): { stored: string; read: Read; raw: string } {
  const body = compose(scanObject(encoder.encode(text), 1000), {
    place: { shard, cluster },
    apiVersion: 'apis.kcp.io/v1',
    version: 'v1',
    metadata,
  });
  const raw = textOf({ body }, '4711');
  const { metadataStart, metadataEnd, annotationsAt } = body.marks;
  const stored = decoder.decode(body.bytes);
  const span = JSON.parse(decoder.decode(body.bytes.subarray(metadataStart, metadataEnd)));
  const parsed = JSON.parse(raw);
  if (
    JSON.stringify(Object.keys(span).toSorted()) !==
    JSON.stringify(
      Object.keys(parsed.metadata)
        .filter((k) => k !== 'resourceVersion')
        .toSorted(),
    )
  )
    throw new Error(`metadata marks of ${raw}`);
  const annotated = JSON.parse(
    decoder.decode(body.bytes.subarray(0, annotationsAt)) + '"x/y":"z",' + decoder.decode(body.bytes.subarray(annotationsAt)),
  );
  if (annotated.metadata.annotations['x/y'] !== 'z') throw new Error(`annotation mark of ${raw}`);
  return { stored, read: parsed, raw };
}

test('a body with both place annotations is returned byte for byte, with its revision inserted', (t) => {
  const head =
    '{"apiVersion":"apis.kcp.io/v1","kind":"X","metadata":{"annotations":{"kcp.io/cluster":"acme","kcp.io/shard":"amber"},"name":"n",';
  for (const tail of [
    '"resourceVersion":"4711","uid":"u"},"spec":{"a":1.0,"b":9007199254740993,"__proto__":{}}}',
    '"uid":"u","resourceVersion":"4711"},"spec":1e3}',
  ]) {
    t.is(composed(head + tail).raw, head + tail);
  }
});

test('wherever white space is, and whatever the metadata holds already, the revision gets its place', (t) => {
  const names = ['uid', 'generation', 'labels', 'annotations', 'resourceVersion', 'selfLink', 'creationTimestamp', 'strange'];
  const values: Record<string, string> = { annotations: '{"kcp.io/cluster":"acme","kcp.io/shard":"amber"}', labels: '{}', generation: '1' };
  // An object without a name is refused earlier.
  const namedMembers = fc
    .tuple(fc.uniqueArray(fc.constantFrom(...names)), fc.nat())
    .map(([members, at]) => members.toSpliced(at % (members.length + 1), 0, 'name'));
  const gap = fc.constantFrom('', '', ' ', '\n', '\r\n  ', '\t');
  const shapes = fc.tuple(namedMembers, fc.infiniteStream(gap), fc.boolean());
  fc.assert(
    fc.property(shapes, ([members, gaps, isStamped]) => {
      const space = (): string => gaps.next().value;
      const spaced = (parts: readonly string[]): string => parts.map((part) => `${space()}${part}${space()}`).join(',');
      const metadata = `{${spaced(members.map((name) => `"${name}"${space()}:${space()}${values[name] ?? '"x"'}`))}}`;
      const text = `{${spaced(['"apiVersion":"apis.kcp.io/v1"', '"kind":"X"', `"metadata"${space()}:${space()}${metadata}`])}}`;
      const { read } = composed(text, isStamped ? { uid: '"u"' } : {});
      const kept = members.filter((name) => !['resourceVersion', 'selfLink', 'strange'].includes(name));
      const shown = new Set([...kept, 'annotations', 'resourceVersion', ...(isStamped ? ['uid'] : [])]);
      t.deepEqual(Object.keys(read.metadata).toSorted(), [...shown].toSorted(), text);
      t.is(read.metadata.resourceVersion, '4711');
    }),
    { numRuns: rounds(3_000) },
  );
});

test('missing members are inserted, different ones replaced, and members that are not stored dropped', (t) => {
  const cases: [string, MetadataStamp, Record<string, unknown>][] = [
    ['{"kind":"X","metadata":{"name":"n"}}', { uid: '"u"', generation: '1' }, { name: 'n', uid: 'u', generation: 1 }],
    ['{"kind":"X","metadata":{"resourceVersion":"5","name":"n"}}', { uid: '"u"' }, { name: 'n', uid: 'u' }],
    ['{"kind":"X","metadata":{"name":"n","deletionTimestamp":"t","resourceVersion":"5"}}', { deletionTimestamp: undefined }, { name: 'n' }],
    [
      '{"kind":"X","metadata":{"selfLink":"s","name":"n","resourceVersion":"5","namespace":"s"}}',
      { uid: '"longer"' },
      { name: 'n', namespace: 's', uid: 'longer' },
    ],
    [
      '{"kind":"X","metadata":{"uid":"old","resourceVersion":"5"}}',
      { uid: '"much longer"', name: '"n"' },
      { name: 'n', uid: 'much longer' },
    ],
    ['{"kind":"X","metadata":{"name":"n","annotations":null}}', {}, { name: 'n' }],
    ['{"kind":"X","metadata":{"name":"n","annotations":{}}}', {}, { name: 'n' }],
    [
      '{"kind":"X","metadata": { "name" : "n" , "resourceVersion" : "5" , "annotations" : { "kcp.io/shard" : "birch" } } }',
      {},
      { name: 'n' },
    ],
  ];
  for (const [text, stamp, expected] of cases) {
    const { annotations, resourceVersion, ...rest } = composed(text, stamp).read.metadata;
    t.deepEqual(rest, expected, text);
    t.is(resourceVersion, '4711');
    t.deepEqual({ ...annotations }, { 'kcp.io/cluster': 'acme', 'kcp.io/shard': 'amber' });
  }
});

test('a stored body is one line without surrounding space, and its strings are unchanged', (t) => {
  const { raw, stored } = composed('\n {"kind":"X",\r\n "metadata":{\n"name":"n"},"spec":"a\\nb"}\n\n');

  t.false(/[\r\n]/.test(stored));
  t.true(stored.startsWith('{"') && stored.endsWith('}'));
  t.is(JSON.parse(raw).spec, 'a\nb');
});

test('a repeated name keeps its last value', (t) => {
  const text = '{"kind":"A","kind":"B","metadata":{"name":"dup","labels":{"a":"1","a":"2"},"name":"dup2"},"spec":{}}';

  t.deepEqual(duplicates(scanObject(encoder.encode(text), 10)), ['kind', 'metadata.name', 'metadata.labels.a']);
  const { read } = composed(text);
  t.is(read.kind, 'B');
  t.is(read.metadata.name, 'dup2');
  t.deepEqual(read.metadata.labels, { a: '2' });
});

test('the scanner accepts exactly what JSON.parse accepts', (t) => {
  const bodies = fc.oneof(
    fc.json({ maxDepth: 6 }),
    fc.json().map((text) => text.slice(0, -1)),
    fc.constantFrom(
      '01',
      '-',
      '1.',
      '1e',
      '.5',
      '"\\x"',
      '"\\u12g4"',
      'tru',
      'nul',
      '[1,]',
      '{"a":1,}',
      '[1 2]',
      '{"a" 1}',
      '"\u0001"',
      '-0.5e+10',
      '1E-2',
      '[]',
      '{}',
      '[[],{}]',
      '',
    ),
  );
  fc.assert(
    fc.property(bodies, (value) => {
      const text = `{"kind":"X","metadata":{"name":"n"},"spec":${value}}`;
      let parsed = true;
      try {
        JSON.parse(text);
      } catch {
        parsed = false;
      }
      let scanned = true;
      try {
        scanObject(encoder.encode(text), 1000);
      } catch (error) {
        if (!(error instanceof NotJson)) throw error;
        scanned = false;
      }
      return parsed === scanned;
    }),
    { numRuns: rounds(1000) },
  );
  t.pass();
});

test('nesting beyond the bound is refused, however deep, without recursion', (t) => {
  const nested = (depth: number): Uint8Array => encoder.encode(`{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`);

  t.notThrows(() => scanObject(nested(99), 100));
  t.throws(() => scanObject(nested(100), 100), { instanceOf: NotJson, message: 'exceeded max depth of 100' });
  t.throws(() => scanObject(nested(1_000_000), 10_000), { instanceOf: NotJson });
});

test('members that ObjectMeta does not have are dropped, wherever they are', (t) => {
  const known = '"name":"n","labels":{"x":"y"}';
  const metadata = (text: string): Record<string, unknown> => {
    const {
      annotations: _,
      resourceVersion: __,
      ...others
    } = composed(`{"apiVersion":"apis.kcp.io/v1","metadata":{${text}},"other":1}`).read.metadata;
    return others;
  };

  for (const text of [
    `"x":1,${known}`,
    `${known},"x":1`,
    `"x":1,${known},"y":{"a":[1]},"z":"resourceVersion"`,
    `"name":"n", "x" : 1 ,"y":2, "labels":{"x":"y"}`,
  ])
    t.deepEqual(metadata(text), { name: 'n', labels: { x: 'y' } }, text);
  for (const text of [
    `"x":1,${known},"resourceVersion":"3"`,
    `"resourceVersion":"3","x":1,${known}`,
    `"x":1,"x":2,${known},"selfLink":"l","y":3`,
  ])
    t.deepEqual(metadata(text), { name: 'n', labels: { x: 'y' } }, text);
  const structs =
    '"name":"n","ownerReferences":[{"x":1},{"x":1,"uid":"u","y":2},{"uid":"v"}],"managedFields":[{"manager":"m","fieldsV1":{"x":1},"x":1}]';
  t.deepEqual(metadata(structs), {
    name: 'n',
    ownerReferences: [{}, { uid: 'u' }, { uid: 'v' }],
    managedFields: [{ manager: 'm', fieldsV1: { x: 1 } }],
  });
  t.true(composed(`{"metadata":{${known}},"other":1}`).stored.endsWith(',"other":1}'));
});
