/** How answers are encoded: forms by Accept, HEAD, pretty, YAML, tables, gzip. */
import { test } from '../../support/test.js';
import { gunzipSync } from 'node:zlib';
import { request } from 'node:https';
import type { KubeClient, KubeList } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { shared } from '../../support/shared.js';
import { aServer, TestServer, until } from '../../support/test-server.js';

const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';

type Known = Readonly<{ server: TestServer; h1: KubeClient; h2: KubeClient }>;

const known = shared(
  async (): Promise<Known> => {
    const server = await TestServer.start();
    const [h1, h2] = [server.client(), server.client({ http2: true })];
    await h2.create(aPath({ cluster: 'small' }), anApiExport({}, { spec: { one: 1, big: 12 } }));
    await Promise.all(
      Array.from({ length: 300 }, (_, i) =>
        h2.create(aPath({ cluster: 'large' }), anApiExport({ name: `n${i}` }, { spec: { text: 'x'.repeat(1000) } })),
      ),
    );
    return { server, h1, h2 };
  },
  ({ server }) => server.close(),
);

/** The bytes as received, still compressed. */
async function bytesOf(
  server: TestServer,
  path: string,
  headers: Record<string, string>,
): Promise<{ encoding: string | undefined; vary: string | undefined; bytes: Buffer }> {
  return new Promise((resolve, reject) => {
    const { certificate: cert, key } = server.master;
    request({ host: '127.0.0.1', port: server.port, path, headers, cert, key, rejectUnauthorized: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ encoding: response.headers['content-encoding'], vary: response.headers.vary, bytes: Buffer.concat(chunks) }),
      );
      response.on('error', reject);
    })
      .on('error', reject)
      .end();
  });
}

test('a long list is compressed for a client that accepts gzip, and is the same list', async (t) => {
  const { server } = await known();
  const plain = await bytesOf(server, aPath({ cluster: 'large' }), {});

  const packed = await bytesOf(server, aPath({ cluster: 'large' }), { 'accept-encoding': 'br, gzip' });

  t.is(plain.encoding, undefined);
  t.deepEqual([packed.encoding, packed.vary], ['gzip', 'Accept-Encoding']);
  t.true(packed.bytes.length < plain.bytes.length / 10);
  t.is(Buffer.compare(gunzipSync(packed.bytes), plain.bytes), 0);
});

test('a short list, a refused gzip and a watch are never compressed', async (t) => {
  const { server, h1 } = await known();

  t.is((await bytesOf(server, aPath({ cluster: 'small' }), { 'accept-encoding': 'gzip' })).encoding, undefined);
  t.is((await bytesOf(server, aPath({ cluster: 'large' }), { 'accept-encoding': 'gzip;q=0' })).encoding, undefined);
  t.is((await bytesOf(server, aPath({ cluster: 'large' }), { 'accept-encoding': 'identity' })).encoding, undefined);
  const watch = await h1.raw('GET', `${aPath({ cluster: 'large' })}?watch=true&timeoutSeconds=1`, {
    headers: { 'accept-encoding': 'gzip' },
  });
  t.is(watch.headers['content-encoding'], undefined);
});

for (const version of ['h1', 'h2'] as const) {
  test(`HEAD is answered like GET without a body, at once, even for a watch (${version})`, async (t) => {
    const { server, [version]: client } = await known();

    for (const path of [
      '/healthz',
      '/metrics',
      aPath({ cluster: 'small' }),
      aPath({ cluster: 'large' }),
      aPath({ cluster: 'small', name: 'one' }),
      `${aPath({ cluster: 'large' })}?watch=true`,
    ]) {
      const answer = await client.raw('HEAD', path, { timeoutMs: 10_000, headers: { 'accept-encoding': 'gzip' } });
      t.deepEqual([path, answer.status, answer.text], [path, 200, '']);
    }
    t.is((await client.raw('HEAD', aPath({ name: 'none' }))).status, 404);
    await server.untilNoWatch();
  });
}

test('pretty JSON is the same JSON with space between tokens; curl gets that too', async (t) => {
  const { h1 } = await known();
  const path = aPath({ cluster: 'small', name: 'one' });
  const plain = await h1.raw('GET', path);

  for (const pretty of [
    await h1.raw('GET', `${path}?pretty=true`),
    await h1.raw('GET', `${path}?pretty=1`),
    await h1.raw('GET', path, { headers: { 'user-agent': 'curl/8.5.0' } }),
  ]) {
    t.true(pretty.text.includes('\n  "spec": {\n    "one": 1,\n    "big": 12\n  }\n}\n'), pretty.text);
    t.is(JSON.stringify(JSON.parse(pretty.text)), plain.text);
  }
  t.is((await h1.raw('GET', `${path}?pretty=false`, { headers: { 'user-agent': 'curl/8.5.0' } })).text, plain.text);
});

test('an object and a list are YAML on request; a long list stays JSON, and its content type says so', async (t) => {
  const { h1 } = await known();
  const headers = { accept: 'application/yaml' };

  const one = await h1.raw('GET', aPath({ cluster: 'small', name: 'one' }), { headers });
  const list = await h1.raw('GET', aPath({ cluster: 'small' }), { headers });
  const large = await h1.raw('GET', aPath({ cluster: 'large' }), { headers });

  t.deepEqual(
    [one, list, large].map((answer) => answer.headers['content-type']),
    ['application/yaml', 'application/yaml', 'application/json'],
  );
  t.true(one.text.includes('\nspec:\n  one: 1\n  big: 12\n'));
  t.true(list.text.startsWith('apiVersion: apis.kcp.io/v1alpha2\nkind: APIExportList\nitems:\n'));
  t.is((JSON.parse(large.text) as KubeList).items.length, 300);
  t.is((await h1.raw('GET', `${aPath()}?watch=true`, { headers })).status, 406);
});

test('a list as a table has one set of columns and a row per object; a watch of tables has columns in its first event', async (t) => {
  const { h1 } = await known();
  const list = JSON.parse((await h1.raw('GET', `${aPath({ cluster: 'large' })}?limit=10`, { headers: { accept: table } })).text) as {
    kind: string;
    rows: { cells: unknown[]; object: { kind: string } }[];
    columnDefinitions: unknown[];
    metadata: { continue?: string };
  };

  const events: { rows: unknown[]; columnDefinitions: unknown[] }[] = [];
  for await (const { object } of h1.watch(`${aPath({ cluster: 'large' })}?watch=true&timeoutSeconds=1`, { headers: { accept: table } }))
    events.push(object as never);

  t.deepEqual([list.kind, list.rows.length, list.columnDefinitions.length], ['Table', 10, 2]);
  t.is(list.rows[0]?.object.kind, 'PartialObjectMetadata');
  t.truthy(list.metadata.continue);
  t.is(events.length, 300);
  t.deepEqual(events.map(({ columnDefinitions }) => columnDefinitions.length).slice(0, 3), [2, 0, 0]);
  t.is((await h1.raw('GET', `${aPath()}?includeObject=junk`, { headers: { accept: table } })).status, 400);
});

test('an empty list has items: [], and a media type that is not supported is answered 406 as a Status', async (t) => {
  const { h1 } = await known();

  t.regex((await h1.raw('GET', aPath({ cluster: 'empty' }))).text, /"items":\[\]/);
  t.regex((await h1.raw('GET', aPath({ cluster: 'empty' }), { headers: { accept: table } })).text, /"rows":\[\]/);
  const refused = await h1.raw('GET', aPath(), { headers: { accept: 'application/vnd.kubernetes.protobuf' } });
  t.is(refused.status, 406);
  t.like(JSON.parse(refused.text), { kind: 'Status', reason: 'NotAcceptable' });
});

test('readers that leave at any moment of a long list leave no request in flight and nothing in the log', async (t) => {
  const server = await aServer(t, { flags: { 'requests-in-flight-max': '4' } });
  const path = aPath({ cluster: 'large' });
  const clients = [server.client(), server.client({ http2: true })];
  for (let i = 0; i < 300; i += 4) {
    const names = [i, i + 1, i + 2, i + 3].map((n) => `n${n}`);
    await Promise.all(names.map((name) => clients[1]?.create(path, anApiExport({ name }, { spec: { text: 'x'.repeat(1000) } }))));
  }

  for (const client of clients) {
    for (const headers of [{}, { 'accept-encoding': 'gzip' }]) {
      for (let afterMs = 0; afterMs < 20; afterMs += 1)
        await client.raw('GET', path, { headers, signal: AbortSignal.timeout(afterMs) }).catch(() => {});
    }
  }

  await until(
    async () => (await Promise.all(clients.map((client) => client.raw('GET', path)))).every(({ status }) => status === 200),
    2_000,
  );
  t.deepEqual(
    server.logged.filter(({ level }) => level === 'error'),
    [],
  );
});
