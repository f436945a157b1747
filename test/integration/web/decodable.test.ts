/**
 * Objects that Go's clients cannot decode must be refused over HTTP, whichever way they arrive, so
 * that lists stay readable.
 */
import { someOf } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import { objectCases } from '../../support/json/object-cases.js';
import { recordedVerdicts } from '../../support/json/go-verdicts.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { shared } from '../../support/shared.js';
import { aServer, TestServer } from '../../support/test-server.js';

const server = shared(
  () => TestServer.start(),
  (made) => made.close(),
);
let clusters = 0;

const digits = '9'.repeat(400);
/** Members of the metadata (`metadata`) and of the whole object (`rest`). */
const undecodable: readonly (readonly [what: string, metadata: string, rest: string])[] = [
  ['a number beyond float64', '', ',"spec":{"x":1E400}'],
  ['a negative one', '', ',"spec":{"x":[-1E400]}'],
  ['400 digits', '', `,"status":{"x":${digits}}`],
  ['a number in managedFields', ',"managedFields":[{"fieldsV1":{"f:x":1E400}}]', ''],
  ['a number in an unknown member of metadata', ',"other":1E400', ''],
  ['a number that is overwritten', '', ',"spec":{"x":1E400,"x":1}'],
  ['another kind', '', ',"Kind":5'],
  ['another kind, spelled with the sign of Kelvin', '', ',"\\u212aind":"Other"'],
  ['another apiVersion', '', ',"APIVERSION":"a/b/c"'],
  ['another metadata', '', ',"METADATA":{"name":"other"}'],
  ['an owner of two uids', ',"ownerReferences":[{"uid":5,"uid":"x"}]', ''],
  ['a time that stands twice', ',"managedFields":[{"time":"x","time":null}]', ''],
  ['items', '', ',"items":5'],
  ['a list of items', '', ',"items":[{"kind":"APIExport","metadata":{"name":"other"}}]'],
  ['no items', '', ',"items":[]'],
  ['null as items', '', ',"items":null'],
  ['items whose name is escaped', '', ',"\\u0069tems":{}'],
  ['more levels than a list has room for', '', `,"spec":${'['.repeat(9_998)}${']'.repeat(9_998)}`],
];

function text(name: string, metadata: string, rest: string): string {
  return `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":"${name}"${metadata}}${rest}}`;
}

for (const [what, metadata, rest] of undecodable)
  test(`${what}: POST and PUT are refused with a reason, and nothing is stored`, async (t) => {
    const client = (await server()).client();
    const cluster = `c${(clusters += 1)}`;
    const stored = await client.create(aPath({ cluster }), anApiExport());
    const { resourceVersion } = stored.metadata;

    const posted = await client.raw('POST', aPath({ cluster }), { body: text('two', metadata, rest) });
    const body = text('one', `,"resourceVersion":"${resourceVersion}"${metadata}`, rest);
    const put = await client.raw('PUT', aPath({ cluster, name: 'one' }), { body });

    for (const { status, text: answer } of [posted, put]) {
      t.is(status, 400, answer.slice(0, 200));
      t.regex(answer, /float64|another spelling|repeats a name|max depth|take it for a list/);
    }
    t.deepEqual((await client.list(aPath({ cluster }))).items, [stored]);
  });

for (const [type, patch] of [
  ['application/merge-patch+json', '{"spec":{"x":1E400}}'],
  ['application/merge-patch+json', `{"metadata":{"managedFields":[{"fieldsV1":{"f:x":${digits}}}]}}`],
  ['application/merge-patch+json', '{"KIND":5}'],
  ['application/merge-patch+json', '{"items":[]}'],
  ['application/json-patch+json', '[{"op":"add","path":"/spec/x","value":[-1E400]}]'],
  ['application/json-patch+json', '[{"op":"add","path":"/items","value":null}]'],
  ['application/json-patch+json', '[{"op":"add","path":"/metadata/ownerReferences","value":[{"uid":5}]}]'],
  ['application/strategic-merge-patch+json', '{"rules":[{"x":1E400}]}'],
  ['application/strategic-merge-patch+json', '{"items":5}'],
] as const)
  test(`${type} ${patch.slice(0, 60)}: a patch with an undecodable result is refused`, async (t) => {
    const client = (await server()).client();
    const role = type.includes('strategic');
    const cluster = `c${(clusters += 1)}`;
    const at = role ? { cluster, group: 'rbac.authorization.k8s.io', resource: 'clusterroles', version: 'v1' } : { cluster };
    const body = role
      ? { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'one' }, rules: [] }
      : anApiExport();
    const stored = await client.create(aPath(at), body);

    const { status, text: answer } = await client.raw('PATCH', aPath({ ...at, name: 'one' }), {
      body: patch,
      headers: { 'content-type': type },
    });

    t.true([400, 422].includes(status), answer.slice(0, 200));
    t.regex(answer, /float64|another spelling|cannot unmarshal|take it for a list/);
    t.deepEqual((await client.list(aPath(at))).items, [stored]);
  });

test('a patch may remove what an object must not have, and a test for an undecodable number fails', async (t) => {
  const client = (await server()).client();
  const cluster = `c${(clusters += 1)}`;
  await client.create(aPath({ cluster }), anApiExport());
  const headers = { 'content-type': 'application/json-patch+json' };

  const body = '[{"op":"add","path":"/spec/x","value":1E400},{"op":"remove","path":"/spec/x"},{"op":"add","path":"/spec/y","value":1}]';
  t.is((await client.raw('PATCH', aPath({ cluster, name: 'one' }), { headers, body })).status, 200);
  const tested = await client.raw('PATCH', aPath({ cluster, name: 'one' }), {
    headers,
    body: '[{"op":"test","path":"/spec/y","value":1E400}]',
  });
  t.is(tested.status, 422);
});

for (const number of ['1e400', '-1E400', digits, '.9e400', '1_0e400'])
  test(`YAML with the number ${number.slice(0, 20)} is refused`, async (t) => {
    const client = (await server()).client();
    const cluster = `c${(clusters += 1)}`;
    const body = `apiVersion: apis.kcp.io/v1alpha2\nkind: APIExport\nmetadata: {name: one}\nspec: {x: ${number}}\n`;

    const { status, text: answer } = await client.raw('POST', aPath({ cluster }), {
      body,
      headers: { 'content-type': 'application/yaml' },
    });

    t.is(status, 400);
    t.regex(answer, /cannot unmarshal number .* float64/);
  });

test('every case of the tables is accepted or refused over HTTP as Go would, and none is a server error', async (t) => {
  const own = await aServer(t);
  const client = own.client();
  const { sent, stored } = recordedVerdicts();
  const path = aPath({ group: 'rbac.authorization.k8s.io', resource: 'clusterroles', version: 'v1' });
  const headers = { 'content-type': 'application/json' };
  for (const { name, text: body } of someOf(objectCases)) {
    const { status, text: answer } = await client.raw('POST', `${path}?dryRun=All`, { body: Buffer.from(body), headers });
    if (status === 201) t.is(stored[name] ?? sent[name], '', name);
    else t.true([400, 413, 422].includes(status), `${name}: ${status} ${answer.slice(0, 200)}`);
  }
});
