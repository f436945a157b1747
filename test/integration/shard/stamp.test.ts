import { test } from '../../support/test.js';
import type { KubeObject } from '../../support/kube-client.js';
import { readRecording } from '../../clients/golden/recording.js';
import { readSourceObject } from '../../../src/kube/source-object.js';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import { replicatedTypes } from '../../../src/shard/selection.js';
import { stamp } from '../../../src/shard/stamp.js';
import { asOnShard } from '../../support/shard-stand-in-objects.js';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const type = { group: 'apis.kcp.io', version: 'v1alpha2', kind: 'APIExport' };

function stamped(text: string): string {
  return decoder.decode(stamp(readSourceObject(encoder.encode(text)), type));
}

test('the agent pushes exactly what kcp recorded in its creates, except for the shard, which the cache sets', async (t) => {
  const posts = [...(await readRecording('kcp-2-shards.jsonl')), ...(await readRecording('kcp-identity.jsonl'))].filter(
    ({ method, body }) => method === 'POST' && body?.includes('"cache.kcp.io/original-resource-version"'),
  );
  t.true(posts.length > 100);
  for (const { url, body = '' } of posts) {
    const recorded = JSON.parse(body) as KubeObject;
    const { apiVersion = '', kind = '', ...rest } = asOnShard(recorded);
    const [group, version] = apiVersion.split('/') as [string, string];
    // kcp serves RBAC objects without kind and apiVersion, and custom resources with them.
    const served = JSON.stringify(group.endsWith('.kcp.io') ? { apiVersion, kind, ...rest } : rest);

    const pushed = JSON.parse(decoder.decode(stamp(readSourceObject(encoder.encode(served)), { group, version, kind }))) as KubeObject;

    const { 'kcp.io/shard': _, ...annotations } = recorded.metadata.annotations ?? {};
    t.deepEqual(pushed, { ...recorded, metadata: { ...recorded.metadata, annotations } }, url);
  }
});

test('every recorded type is one that the agent replicates, or a declared one', async (t) => {
  const kinds = new Set(replicatedTypes(kcpTypes).map(({ kind }) => kind));
  const posts = (await readRecording('kcp-2-shards.jsonl')).filter(({ method, status }) => method === 'POST' && status === 201);

  t.deepEqual(
    [...new Set(posts.map(({ body = '{}' }) => (JSON.parse(body) as KubeObject).kind ?? ''))].filter((kind) => !kinds.has(kind)),
    [],
  );
});

test('every member that the agent does not stamp is copied byte for byte', (t) => {
  const annotated = '"annotations":{"cache.kcp.io/original-resource-UID":"u","cache.kcp.io/original-resource-version":"7"';
  const spec = '"spec":{"a":1.0,"b":9007199254740993,"__proto__":{"c":"\\u00e9é"}}';
  const typed = '"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport"';
  const cases = [
    [
      `{${typed},"metadata":{"name":"n","resourceVersion":"7","uid":"u"},${spec}}`,
      `{${typed},"metadata":{${annotated}},"name":"n","uid":"u"},${spec}}`,
    ],
    [
      `{${typed},"metadata":{"uid":"u","annotations":{"x": "y"},"resourceVersion":"7"},${spec}}`,
      `{${typed},"metadata":{"uid":"u",${annotated},"x": "y"}},${spec}}`,
    ],
    [
      `{${typed},"metadata":{"uid":"u","annotations":{"cache.kcp.io/original-resource-version":"3","cache.kcp.io/original-resource-UID":"u"},"resourceVersion":"7"}}`,
      `{${typed},"metadata":{"uid":"u","annotations":{"cache.kcp.io/original-resource-version":"7","cache.kcp.io/original-resource-UID":"u"}}}`,
    ],
    [
      `{"metadata":{"uid":"u","annotations":null,"resourceVersion":"7"},${spec}}`,
      `{"kind":"APIExport","apiVersion":"apis.kcp.io/v1alpha2","metadata":{"uid":"u",${annotated}}},${spec}}`,
    ],
  ] as const;

  for (const [served, pushed] of cases) t.is(stamped(served), pushed);
});
