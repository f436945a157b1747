import { test } from '../../support/test.js';
import fc from 'fast-check';
import { scanObject } from '../../../src/json/object-text.js';
import { admitCreate } from '../../../src/intake/admit/admit-create.js';
import { admitUpdate } from '../../../src/intake/admit/admit-update.js';
import { aCreate, anExport, anUpdate, aStored, bytesOf, storedVersion, textOf } from '../../support/intake/bodies.js';

const current = aStored(anExport({ name: 'one', annotations: { 'kcp.io/shard': 'amber' } }));
const names = [
  'name',
  'generateName',
  'namespace',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'labels',
  'annotations',
  'finalizers',
  'ownerReferences',
  'managedFields',
  'selfLink',
  '__proto__',
  'constructor',
  'toString',
];
const prototype = JSON.stringify(Object.getOwnPropertyNames(Object.prototype));

const value = fc.oneof(
  fc.json(),
  fc.constantFrom(
    '"one"',
    '"a"',
    '{}',
    'null',
    '1',
    '-1',
    '1.0',
    '"2026-11-21T00:40:56Z"',
    JSON.stringify(storedVersion),
    '{"kcp.io/shard":"x"}',
    '{"__proto__":"x"}',
    '{"__proto__":{"polluted":1}}',
    '[{}]',
    '[null]',
  ),
);
const members = fc
  .array(fc.tuple(fc.constantFrom(...names), value), { maxLength: 6 })
  .map((list) => `{${list.map(([name, text]) => `"${name}":${text}`).join(',')}}`);
const nearly = fc
  .tuple(
    fc.oneof(members, value),
    value,
    fc.constantFrom('"name":"one"', `"name":"one","resourceVersion":"${storedVersion}"`, '"generateName":"g-"'),
  )
  .map(
    ([metadata, spec, own]) =>
      `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":${metadata.replace(/^\{(.)/, (_, next: string) => `{${own}${next === '}' ? '' : ','}${next}`)},"spec":${spec}}`,
  );
const bytes = fc.oneof(
  fc.uint8Array(),
  fc.string().map(bytesOf),
  fc.json().map(bytesOf),
  nearly.map(bytesOf),
  nearly.chain((text) => fc.nat(text.length).map((end) => bytesOf(text.slice(0, end)))),
);

test('any bytes are admitted or refused without an exception, and admitted objects read back whole', (t) => {
  let admitted = 0;
  fc.assert(
    fc.property(bytes, (body) => {
      for (const result of [admitCreate(body, aCreate()), admitUpdate(body, anUpdate({ mustNameRevision: false }), current)]) {
        if (result.kind === 'refused' || ('kind' in result.value && result.value.kind === 'unchanged')) continue;
        admitted++;
        const text = bytesOf(textOf(result.value.mutation));
        const metadata = scanObject(text, 10_000).metadata?.list.map(({ name }) => name) ?? [];
        const once = new Set(metadata).size === metadata.length;
        const { metadata: read } = JSON.parse(new TextDecoder().decode(text)) as {
          metadata: { name: string; annotations: Record<string, string> };
        };
        if (!once || read.name !== result.value.mutation.key.name || read.annotations['kcp.io/shard'] !== 'amber') return false;
      }
      return JSON.stringify(Object.getOwnPropertyNames(Object.prototype)) === prototype && !('polluted' in {});
    }),
    { numRuns: 5_000 },
  );
  t.true(admitted > 100, `${admitted} admitted`);
});
