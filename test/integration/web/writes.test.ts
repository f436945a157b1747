/** Writes over HTTP: what the HTTP layer adds to admission. */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { Refused, tooManyRequests } from '../../../src/domain/errors.js';
import type { HeavyWork } from '../../../src/domain/ports.js';
import { formatJson } from '../../../src/json/json-tree.js';
import { parseYaml } from '../../../src/json/yaml.js';
import { encoded } from '../../../src/web/formats/answer.js';
import type { Answer, KubeClient, KubeObject, KubeStatus, RequestOptions } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { shared } from '../../support/shared.js';
import { TestServer } from '../../support/test-server.js';

const server = shared(
  () => TestServer.start(),
  (made) => made.close(),
);

let clusters = 0;

/** A client, and a logical cluster of the test's own. */
async function aCluster(): Promise<{ client: KubeClient; path: (name?: string) => string }> {
  const cluster = `c${(clusters += 1)}`;
  return { client: (await server()).client(), path: (name) => aPath(name === undefined ? { cluster } : { cluster, name }) };
}

function raw(name: string, spec: string): string {
  return `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":"${name}"},"spec":${spec}}`;
}

test('dryRun answers every write as if it were done, and stores nothing', async (t) => {
  const { client, path } = await aCluster();
  const stored = await client.create(path(), anApiExport());

  t.is((await client.create(`${path()}?dryRun=All`, anApiExport({ name: 'two' }))).metadata.name, 'two');
  t.deepEqual((await client.replace(`${path('one')}?dryRun=All`, { ...stored, spec: { changed: 1 } }))['spec'], { changed: 1 });
  t.deepEqual((await client.mergePatch(`${path('one')}?dryRun=All`, { spec: { changed: 2 } }))['spec'], { changed: 2 });
  t.is((await client.delete(`${path('one')}?dryRun=All`))['status'], 'Success');
  t.is((await client.delete(path('one'), { body: { dryRun: ['All'] } }))['status'], 'Success');
  t.is((await client.raw('DELETE', `${path()}?dryRun=All`)).status, 200);
  t.is((await client.raw('POST', `${path()}?dryRun=All`, { body: anApiExport() })).status, 409);
  t.is((await client.raw('POST', `${path()}?dryRun=Some`, { body: anApiExport() })).status, 422);

  t.deepEqual((await client.list(path())).items, [stored]);
});

for (const [type, patch] of [
  ['application/merge-patch+json', '{"spec":{"added":true}}'],
  ['application/json-patch+json', '[{"op":"add","path":"/spec/added","value":true}]'],
] as const) {
  test(`${type} leaves untouched members as they were: int64, 1.0, escapes and all`, async (t) => {
    const { client, path } = await aCluster();
    const spec = '{"big":9223372036854775807,"one":1.0,"exp":1E+2,"__proto__":{"x":"\\u00e9"},"list":[-0.0,{"a":null}]}';
    await client.raw('POST', path(), { body: raw('one', spec) });

    const { status, text } = await client.raw('PATCH', path('one'), { body: patch, headers: { 'content-type': type } });

    t.is(status, 200);
    for (const kept of [
      '"big":9223372036854775807',
      '"one":1.0',
      '"exp":1E+2',
      '"list":[-0.0,{"a":null}]',
      '"added":true',
      '"__proto__":{"x":"é"}',
    ])
      t.true(text.includes(kept), kept);
  });
}

test('an indented object that already has everything the server would add can be read, listed and watched', async (t) => {
  const { client, path } = await aCluster();
  await client.create(path(), anApiExport({ name: 'two' }));
  const made = await client.create(path(), anApiExport());
  const { resourceVersion: _, ...metadata } = made.metadata;
  await client.delete(path('one'));
  for (const indent of [' ', '\t', 4]) {
    const body = JSON.stringify({ ...made, metadata }, undefined, indent);
    t.is((await client.raw('POST', path(), { body, headers: { 'content-type': 'application/json' } })).status, 201);
    t.is((await client.get(path('one'))).metadata.name, 'one');
    t.is((await client.list(path())).items.length, 2);
    const shown = await client.raw('GET', `${path()}?watch=true&timeoutSeconds=1`);
    t.notThrows(() =>
      shown.text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    );
    await client.delete(path('one'));
  }
});

test('a strategic merge patch merges webhooks by name and replaces rules, for types with such rules; others are 415', async (t) => {
  const { client } = await aCluster();
  const hooks = aPath({ group: 'admissionregistration.k8s.io', resource: 'validatingwebhookconfigurations', version: 'v1' });
  const headers = { 'content-type': 'application/strategic-merge-patch+json' };
  await client.raw('POST', hooks, {
    body: '{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"h"},"webhooks":[{"name":"a","timeoutSeconds":1.0},{"name":"b"}]}',
  });

  const patched = await client.raw('PATCH', `${hooks}/h`, { headers, body: { webhooks: [{ name: 'b', timeoutSeconds: 7 }] } });

  t.true(patched.text.includes('"webhooks":[{"name":"a","timeoutSeconds":1.0},{"name":"b","timeoutSeconds":7}]'), patched.text);
  const { path } = await aCluster();
  await client.create(path(), anApiExport());
  const refused = await client.raw('PATCH', path('one'), { headers, body: {} });
  t.is(refused.status, 415);
  t.true(refused.text.includes('application/json-patch+json, application/merge-patch+json'));
  t.is((await client.raw('PATCH', path('one'), { headers: { 'content-type': 'application/apply-patch+yaml' }, body: 'a: b' })).status, 415);
});

test('a patch that names a version is conditional, an empty one writes nothing, one of an absent object is 404', async (t) => {
  const { client, path } = await aCluster();
  const stored = await client.create(path(), anApiExport());
  const { resourceVersion } = stored.metadata;

  t.deepEqual(await client.mergePatch(path('one'), {}), stored);
  const changed = await client.mergePatch(path('one'), { metadata: { resourceVersion }, spec: { a: 1 } });
  t.not(changed.metadata.resourceVersion, resourceVersion);
  const headers = { 'content-type': 'application/merge-patch+json' };
  t.is((await client.raw('PATCH', path('one'), { headers, body: { metadata: { resourceVersion }, spec: { a: 2 } } })).status, 409);
  t.is((await client.raw('PATCH', path('none'), { headers, body: {} })).status, 404);
  t.is(
    (
      await client.raw('PATCH', path('one'), {
        headers: { 'content-type': 'application/json-patch+json' },
        body: [{ op: 'test', path: '/spec/a', value: 9 }],
      })
    ).status,
    422,
  );
  t.is((await client.raw('PATCH', `${path('one')}?force=true`, { headers, body: {} })).status, 422);
});

test('concurrent patches are all applied', async (t) => {
  const { client, path } = await aCluster();
  await client.create(path(), anApiExport());

  const answers = await Promise.all(
    ['a', 'b', 'c', 'd'].map((name) => client.mergePatch(path('one'), { metadata: { labels: { [name]: 'x' } } })),
  );

  t.is(answers.length, 4);
  t.deepEqual((await client.get(path('one'))).metadata.labels, { a: 'x', b: 'x', c: 'x', d: 'x' });
});

test('a PUT needs the version it replaces, and one that changes nothing writes nothing and causes no event', async (t) => {
  const { client, path } = await aCluster();
  const stored = await client.create(path(), anApiExport());
  const { resourceVersion: _, ...metadata } = stored.metadata;

  t.is((await client.raw('PUT', path('one'), { body: { ...stored, metadata } })).status, 422);
  t.is((await client.raw('PUT', path('none'), { body: { ...stored, metadata: { ...stored.metadata, name: 'none' } } })).status, 404);
  t.deepEqual(await client.replace(path('one'), stored), stored);
  const changed = await client.replace(path('one'), { ...stored, spec: { a: 1 } });
  t.is((await client.raw('PUT', path('one'), { body: { ...stored, spec: { a: 2 } } })).status, 409);
  const received: string[] = [];
  for await (const { type, object } of client.watch(
    `${path()}?watch=true&timeoutSeconds=1&resourceVersion=${stored.metadata.resourceVersion}`,
  ))
    received.push(`${type}@${object.metadata.resourceVersion}`);
  t.deepEqual(received, [`MODIFIED@${changed.metadata.resourceVersion}`]);
});

test('forty concurrent large updates are all stored, because comparing them needs no worker thread', async (t) => {
  const { client, path } = await aCluster();
  const names = Array.from({ length: 40 }, (_, i) => `large-${i}`);
  const spec = (round: string): Readonly<Record<string, unknown>> => ({ round, filling: 'x'.repeat(40 * 1024) });
  const stored = await Promise.all(names.map((name) => client.create(path(), { ...anApiExport({ name }), spec: spec('first') })));

  const answers = await Promise.all(
    stored.map((object) => client.raw('PUT', path(object.metadata.name), { body: { ...object, spec: spec('second') } })),
  );

  t.deepEqual(
    answers.filter(({ status }) => status !== 200).map(({ status, text }) => `${status} ${text.slice(0, 200)}`),
    [],
  );
});

/** Enough objects that the queue for heavy work has no room for all their YAML answers. */
const crowd = Array.from({ length: 40 }, (_, i) => `n${i}`);
const large = Object.fromEntries(Array.from({ length: 2_500 }, (_, i) => [`k${i}`, 'v'.repeat(40)]));
const asYaml = { headers: { accept: 'application/yaml' } } satisfies RequestOptions;

/**
 * The answer has the format of its content type: YAML, or JSON if there was no room to convert it.
 */
function assertWritten(t: ExecutionContext, { headers, text }: Answer, name: string): void {
  const isYaml = headers['content-type'] === 'application/yaml';
  t.true(isYaml ? text.startsWith('apiVersion: ') : headers['content-type'] === 'application/json');
  t.true(isYaml ? text.includes(`name: ${name}\n`) : JSON.stringify(JSON.parse(text)).includes(`"name":"${name}"`), name);
}

test.serial('a write that is stored is never refused because there is no room to convert its answer to YAML', async (t) => {
  const { client, path } = await aCluster();
  const all = (ask: (name: string) => Promise<Answer>): Promise<readonly Answer[]> => Promise.all(crowd.map(ask));
  const ask = async (what: string, code: number, each: (name: string) => Promise<Answer>): Promise<readonly Answer[]> => {
    const answers = await all(each);
    t.deepEqual(
      answers.filter(({ status }) => status !== code).map(({ status }) => status),
      [],
      what,
    );
    for (const [i, answer] of answers.entries()) assertWritten(t, answer, crowd[i] ?? '');
    return answers;
  };

  const created = await ask('create', 201, (name) =>
    client.raw('POST', path(), { ...asYaml, body: { ...anApiExport({ name }), spec: large } }),
  );
  await ask('dry run', 200, (name) => client.raw('DELETE', `${path()}?dryRun=All&fieldSelector=metadata.name%3D${name}`, asYaml));
  const { items } = await client.list(path());
  await ask('update', 200, (name) => {
    const object = items.find(({ metadata }) => metadata.name === name);
    return client.raw('PUT', path(name), { ...asYaml, body: { ...object, spec: { ...large, changed: true } } });
  });
  const patched = await all((name) =>
    client.raw('PATCH', path(name), {
      body: { metadata: { labels: { patched: 'yes' } } },
      headers: { ...asYaml.headers, 'content-type': 'application/merge-patch+json' },
    }),
  );
  for (const { metadata } of (await client.list(path())).items) {
    // A patch is heavy work too: if there is no room for it, it is refused and nothing is stored.
    const { status } = patched[crowd.indexOf(metadata.name ?? '')] ?? {};
    t.is(status, metadata.labels?.['patched'] === 'yes' ? 200 : 429, metadata.name);
  }
  await ask('deletecollection', 200, (name) => client.raw('DELETE', `${path()}?fieldSelector=metadata.name%3D${name}`, asYaml));

  t.log(`${created.filter(({ headers }) => headers['content-type'] === 'application/json').length} of 40 creates answered in JSON`);
  t.deepEqual((await client.list(path())).items, []);
});

test('an answer whose conversion is refused is sent as JSON, with that content type', async (t) => {
  const json = [Buffer.from('{"kind":"APIExport"}')];
  const full: HeavyWork = { run: () => Promise.reject(new Refused(tooManyRequests('too much heavy work'))) };
  const answer = await encoded(201, json, { encoding: 'yaml', heavy: full });
  t.like(answer, { kind: 'bytes', code: 201, contentType: 'application/json', parts: json });
});

test.serial('creates with a generated name, repeated as long as they are refused, create one object each', async (t) => {
  const { client, path } = await aCluster();
  const body = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { generateName: 'made-' }, spec: large };
  const create = async (): Promise<number> => {
    for (;;) {
      const { status } = await client.raw('POST', path(), { ...asYaml, body });
      if (status !== 429) return status;
    }
  };

  const answers = await Promise.all(crowd.map(create));

  t.deepEqual(new Set(answers), new Set([201]));
  t.is((await client.list(path())).items.length, crowd.length);
});

test.serial('half a surrogate pair is U+FFFD in YAML, as Go reads it, so that one object cannot break a list', async (t) => {
  const { client, path } = await aCluster();
  const deep = `${'['.repeat(80)}"\\udfff"${']'.repeat(80)}`;
  const spec = `{"\\ud800":"\\uDC00\\ud800","\\udc01":[2,"\\ud83d\\ude00","\\\\ud800"],"deep":${deep}}`;
  const { status } = await client.raw('POST', path(), {
    body: raw('one', spec).replace('"name"', '"annotations":{"a":"x\\ud800","b":"y"},"name"'),
  });
  t.is(status, 201);

  for (const asked of [path('one'), path()]) {
    const { text } = await client.raw('GET', asked, asYaml);
    const read = parseYaml(text);

    t.is(read.kind, 'parsed', text);
    t.regex(text, /a: "?x\ufffd"?\n/);
    const json = read.kind === 'parsed' ? formatJson(read.value) : '';
    t.true(json.includes(`"spec":{"\ufffd":[2,"😀","\\\\ud800"],"deep":${deep.replace('\\udfff', '\ufffd')}}`), json);
  }
});

test('a delete checks its preconditions, needs no Content-Type, and ignores finalizers', async (t) => {
  const { client, path } = await aCluster();
  const { metadata } = await client.create(path(), anApiExport({ finalizers: ['kcp.io/held'] }));
  const refuse = async (preconditions: unknown): Promise<string> => {
    const { status, text } = await client.raw('DELETE', path('one'), { body: { kind: 'DeleteOptions', apiVersion: 'v1', preconditions } });
    return `${status} ${(JSON.parse(text) as KubeStatus).reason}`;
  };

  t.is(await refuse({ uid: 'other' }), '409 Conflict');
  t.is(await refuse({ resourceVersion: '1' }), '409 Conflict');
  t.is(await refuse({ uid: 7 }), '400 BadRequest');
  const deleted = (await client.delete(path('one'), {
    headers: { 'content-type': '' },
    body: { preconditions: { uid: metadata.uid, resourceVersion: metadata.resourceVersion } },
  })) as KubeStatus;
  t.deepEqual(deleted.details, { name: 'one', group: 'apis.kcp.io', kind: 'apiexports', uid: metadata.uid });
  t.is((await client.raw('DELETE', path('one'))).status, 404);
});

test('a delete is answered in YAML if that is accepted, and with a Status whatever form is requested', async (t) => {
  const client = (await server()).client();
  const all = aPath({ cluster: 'answered' });
  const deleted = async (accept: string): Promise<string> => {
    await client.create(all, anApiExport());
    const { status, headers, text } = await client.raw('DELETE', aPath({ cluster: 'answered', name: 'one' }), { headers: { accept } });
    return `${status} ${headers['content-type']} ${text.slice(0, 16)}`;
  };

  t.is(await deleted('application/yaml'), '200 application/yaml kind: Status\napi');
  t.is(await deleted('text/html, application/yaml;q=x'), '200 application/yaml kind: Status\napi');
  t.is(await deleted('application/json;as=Table;g=meta.k8s.io;v=v1'), '200 application/json {"kind":"Status"');
});

test('deletecollection deletes the selected objects and returns them, up to its limit', async (t) => {
  const { client, path } = await aCluster();
  await Promise.all(
    Array.from({ length: 12 }, (_, i) => client.create(path(), anApiExport({ name: `n${i}`, labels: { odd: String(i % 2) } }))),
  );

  const odd = JSON.parse((await client.raw('DELETE', `${path()}?labelSelector=odd%3D1`)).text) as { kind: string; items: KubeObject[] };
  const limited = JSON.parse((await client.raw('DELETE', `${path()}?limit=2`)).text) as { items: KubeObject[] };

  t.is(odd.kind, 'APIExportList');
  t.is(odd.items.length, 6);
  t.is(limited.items.length, 2);
  t.is((await client.list(path())).items.length, 4);
  t.is((await client.raw('DELETE', `${path()}?continue=x`)).status, 400);
  await client.raw('DELETE', path());
  t.is((await client.list(path())).items.length, 0);
});

test('objects in YAML are stored as the same JSON, numbers included', async (t) => {
  const { client, path } = await aCluster();

  const { status, text } = await client.raw('POST', path(), {
    headers: { 'content-type': 'application/yaml' },
    body: 'apiVersion: apis.kcp.io/v1alpha2\nkind: APIExport\nmetadata:\n  name: one\nspec:\n  big: 9223372036854775807\n  one: 1.0\n',
  });

  t.is(status, 201);
  t.true(text.includes('"spec":{"big":9223372036854775807,"one":1.0}'), text);
});

test('YAML with line ends that other readers treat differently is refused, and nothing is stored', async (t) => {
  const { client, path } = await aCluster();
  const head = 'apiVersion: apis.kcp.io/v1alpha2\nkind: APIExport\nmetadata:\n  name: one # the name';

  for (const end of ['\r', '\u0085', '\u2028', '\u2029', '\n\ufeff']) {
    const body = `${head}${end}  labels: {keep: "yes"}\n`;
    const { status, text } = await client.raw('POST', `${path()}?fieldValidation=Strict`, {
      headers: { 'content-type': 'application/yaml' },
      body,
    });
    t.is(status, 400, JSON.stringify(body));
    t.regex(text, /each line must end with LF or CRLF/);
  }

  t.deepEqual((await client.list(path())).items, []);
});

test('a malformed directive of a strategic merge patch is refused wherever it is, and nothing changes', async (t) => {
  const client = (await server()).client();
  const place = { cluster: 'directives', group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'clusterroles' };
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'one' }, rules: [{ verbs: ['get'] }] };
  const stored = await client.create(aPath(place), role);

  for (const body of [
    { rules: [{ verbs: ['list'], $patch: 'bogus' }] },
    { rules: [{ verbs: ['list'] }, { $patch: 'merge' }] },
    { aggregationRule: { $patch: 'bogus' } },
    { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { $retainKeys: 5 } }] } },
    { metadata: { labels: { $patch: 5 } } },
    { metadata: { annotations: { $retainKeys: 5, a: 'b' } } },
    { metadata: { '$setElementOrder/finalizers': 'a/b' } },
  ]) {
    const headers = { 'content-type': 'application/strategic-merge-patch+json' };
    const { status, text } = await client.raw('PATCH', aPath({ ...place, name: 'one' }), { headers, body });
    t.is(status, 400, text);
    t.is((JSON.parse(text) as KubeStatus).reason, 'BadRequest');
  }

  t.deepEqual(await client.get(aPath({ ...place, name: 'one' })), stored);
});

test('an unknown method, a named POST and a subresource are refused in Kubernetes’ words', async (t) => {
  const { client, path } = await aCluster();
  await client.create(path(), anApiExport());

  t.is((await client.raw('POST', path('one'), { body: anApiExport() })).status, 405);
  t.is((await client.raw('PUT', path(), { body: anApiExport() })).status, 405);
  t.is((await client.raw('OPTIONS', path())).status, 405);
  t.is((await client.raw('GET', `${path('one')}/status`)).status, 404);
  t.is((await client.raw('PUT', `${path('one')}/status`, { body: anApiExport() })).status, 404);
});

test('an object is returned in the version of the URL, and can be written in either', async (t) => {
  const { client, path } = await aCluster();
  await client.create(path(), anApiExport());
  const old = path('one').replace('v1alpha2', 'v1alpha1');

  const read = await client.get(old);
  const written = await client.replace(old, { ...read, spec: { by: 'v1alpha1' } });

  t.is(read.apiVersion, 'apis.kcp.io/v1alpha1');
  t.is(written.apiVersion, 'apis.kcp.io/v1alpha1');
  t.like(await client.get(path('one')), { apiVersion: 'apis.kcp.io/v1alpha2', spec: { by: 'v1alpha1' } });
  t.is((await client.raw('PUT', path('one'), { body: written })).status, 400);
});
