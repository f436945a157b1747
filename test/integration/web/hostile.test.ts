/**
 * Malformed and hostile input. Each case must get the Status that Kubernetes has for it, or be
 * closed. Nothing may be stored, Object.prototype must not change, the event loop must never block
 * for long, and the server must go on.
 */
import { test } from '../../support/test.js';
import { once } from 'node:events';
import { connect as connectHttp2, type ClientHttp2Session, type OutgoingHttpHeaders } from 'node:http2';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer, KubeStatus, RequestOptions } from '../../support/kube-client.js';
import { processorMs } from '../../support/fastest.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { shared } from '../../support/shared.js';
import { TestServer, until } from '../../support/test-server.js';

const mebibyte = 1024 * 1024;
/**
 * The bound of 100 ms times four, because the tests share two cores, and this thread is both client
 * and server.
 */
const blockedMsMax = 100 * 4;

const prototypeBefore = JSON.stringify(Object.getOwnPropertyNames(Object.prototype));

/**
 * The server that all tests attack. At the end it must still serve, have logged no error, and have
 * left Object.prototype unchanged.
 */
const attacked = shared(
  () => TestServer.start({ flags: { 'headers-timeout': '500ms', 'request-timeout': '4s' } }),
  async (server, t) => {
    t.is((await server.client().raw('GET', '/livez')).status, 200);
    t.deepEqual(
      server.logged.filter(({ level }) => level === 'error'),
      [],
    );
    t.is(JSON.stringify(Object.getOwnPropertyNames(Object.prototype)), prototypeBefore);
    await server.close();
  },
);

/** Each test has its own clusters, so that it can check that nothing was stored. */
let clusters = 0;

function aCluster(): string {
  return `h${(clusters += 1)}`;
}

async function refused(method: string, path: string, options: RequestOptions = {}): Promise<string> {
  const answers: Answer[] = [];
  for (const http2 of [false, true]) answers.push(await (await attacked()).client({ http2 }).raw(method, path, options));
  const [h1, h2] = answers.map(({ status, text }) => `${status} ${(JSON.parse(text) as KubeStatus).reason}`);
  return h1 === h2 ? (h1 ?? '') : `${h1} but over HTTP/2 ${h2}`;
}

async function stored(cluster: string): Promise<number> {
  return (await (await attacked()).client().list(aPath({ cluster, shard: '*' }))).items.length;
}

/**
 * The longest time for which the task blocked the event loop, at most the processor time of this
 * thread, so that other processes do not count.
 */
async function blockedMs(task: () => Promise<unknown>): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: 2 });
  const before = processorMs();
  delay.enable();
  await sleep(10);
  await task();
  await sleep(10);
  delay.disable();
  return Math.min(delay.max / 1e6, processorMs() - before);
}

async function aSocket(text: string | Buffer): Promise<{ socket: TLSSocket; read: () => string; closed: () => boolean }> {
  const { port, master } = await attacked();
  const socket = connectTls({ host: '127.0.0.1', port, cert: master.certificate, key: master.key, rejectUnauthorized: false });
  let read = '';
  let closed = false;
  socket.on('data', (chunk: Buffer) => (read += chunk.toString()));
  socket.on('error', () => {});
  socket.on('close', () => (closed = true));
  await once(socket, 'secureConnect');
  socket.write(text);
  return { socket, read: () => read, closed: () => closed };
}

async function aSession(): Promise<ClientHttp2Session> {
  const { url, master } = await attacked();
  const session = connectHttp2(url, { cert: master.certificate, key: master.key, rejectUnauthorized: false });
  session.on('error', () => {});
  await once(session, 'connect');
  return session;
}

function request(session: ClientHttp2Session, headers: OutgoingHttpHeaders, ended = true) {
  const stream = session.request(headers, { endStream: ended });
  stream.on('error', () => {});
  return stream;
}

function raw(name: string, rest: string): string {
  return `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":${JSON.stringify(name)}}${rest}}`;
}

const json = { 'content-type': 'application/json' };
const yaml = { 'content-type': 'application/yaml' };
const merge = { 'content-type': 'application/merge-patch+json' };
const jsonPatch = { 'content-type': 'application/json-patch+json' };

for (const [what, path, expected] of [
  ['a broken escape', '/services/cache/shards/amber/clusters/acme/apis/%zz', '400 BadRequest'],
  ['an escape that is no UTF-8', '/services/cache/shards/amber/clusters/%C3%28/apis', '400 BadRequest'],
  ['a lone percent sign', '/%', '400 BadRequest'],
  ['two slashes', '//', '400 BadRequest'],
  ['two slashes and a host', '//localhost/shards/amber', '400 BadRequest'],
  ['dots', '/services/cache/shards/amber/clusters/acme/../../../../etc/passwd', '400 BadRequest'],
  ['a shard in upper case', aPath({ shard: 'AMBER' }), '400 BadRequest'],
  ['a shard that is too long', aPath({ shard: 'a'.repeat(62) }), '400 BadRequest'],
  ['a shard with a slash in it', aPath({ shard: 'a%2Fb' }), '400 BadRequest'],
  ['__proto__ as shard', aPath({ shard: '__proto__' }), '400 BadRequest'],
  ['a cluster with an underscore', aPath({ cluster: 'a_b' }), '400 BadRequest'],
  ['__proto__ as cluster', aPath({ cluster: '__proto__' }), '400 BadRequest'],
  ['no cluster', '/services/cache/shards/amber/apis/apis.kcp.io/v1alpha2/apiexports', '400 BadRequest'],
  ['__proto__ as group', aPath({ group: '__proto__' }), '404 NotFound'],
  ['constructor as version', aPath({ version: 'constructor' }), '404 NotFound'],
  ['prototype as resource', aPath({ resource: 'prototype' }), '404 NotFound'],
  ['__proto__ as identity', aPath({ identity: '__proto__', resource: 'instances' }), '404 NotFound'],
  ['__proto__ as name', aPath({ name: '__proto__' }), '404 NotFound'],
  ['a name with a NUL', aPath({ name: 'a\0b' }), '404 NotFound'],
  ['a name of 10,000 characters', aPath({ name: 'a'.repeat(10_000) }), '404 NotFound'],
  ['a junk resourceVersion', `${aPath()}?resourceVersion=junk`, '400 BadRequest'],
  ['a resourceVersion of 5,000 digits', `${aPath()}?resourceVersion=${'9'.repeat(5_000)}`, '400 BadRequest'],
  ['__proto__ as resourceVersion', `${aPath()}?resourceVersion=__proto__`, '400 BadRequest'],
  ['a junk limit', `${aPath()}?limit=1e3`, '400 BadRequest'],
  ['a junk continue token', `${aPath()}?continue=AAAA`, '400 BadRequest'],
  ['a continue token of much JSON', `${aPath()}?continue=${Buffer.from(`[${'['.repeat(5_000)}`).toString('base64url')}`, '400 BadRequest'],
  ['a junk label selector', `${aPath()}?labelSelector=${encodeURIComponent('a in (')}`, '400 BadRequest'],
  ['a label selector of 10,000 characters', `${aPath()}?labelSelector=${'a'.repeat(10_000)}`, '400 BadRequest'],
  ['a label selector of exclamation marks', `${aPath()}?labelSelector=${'!'.repeat(10_000)}`, '400 BadRequest'],
  ['a field selector of nothing known', `${aPath()}?fieldSelector=${encodeURIComponent('__proto__=1')}`, '400 BadRequest'],
  ['a field selector of exclamation marks', `${aPath()}?fieldSelector=${'!'.repeat(10_000)}`, '400 BadRequest'],
  ['a match without a version', `${aPath()}?resourceVersionMatch=constructor`, '422 Invalid'],
  ['a junk timeout of a watch', `${aPath()}?watch=true&timeoutSeconds=soon`, '400 BadRequest'],
] satisfies [string, string, string][]) {
  test.serial(`${what} in a URL is ${expected}`, async (t) => {
    t.is(await refused('GET', path), expected);
  });
}

test.serial('a selector of thousands of terms is answered quickly, and so is a watch with it', async (t) => {
  const server = await attacked();
  const terms = Array.from({ length: 1_200 }, (_, i) => `k${i}!=v`).join(',');
  const path = `${aPath()}?labelSelector=${encodeURIComponent(terms)}`;

  const stoodMs = await blockedMs(async () => {
    t.is((await server.client().raw('GET', path)).status, 200);
    t.is((await server.client().raw('GET', `${path}&watch=true&timeoutSeconds=1`)).status, 200);
  });

  t.true(stoodMs < blockedMsMax, `${stoodMs} ms`);
});

const deepJson = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const laughs = `a: &a [x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 9 }, (_, i) => `${'bcdefghij'[i]}: &${'bcdefghij'[i]} [${`*${'abcdefghi'[i]},`.repeat(9)}]\n`).join('')}`;
const yamlHead = 'apiVersion: apis.kcp.io/v1alpha2\nkind: APIExport\nmetadata: {name: one}\n';

for (const [what, headers, body, expected] of [
  ['nothing', json, '', '400 BadRequest'],
  ['no JSON', json, '{"a":', '400 BadRequest'],
  ['JSON and more', json, `${raw('one', '')}x`, '400 BadRequest'],
  ['an array', json, '[]', '400 BadRequest'],
  ['null', json, 'null', '400 BadRequest'],
  ['bytes that are no UTF-8', json, Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]), '400 BadRequest'],
  ['a body without a kind', json, '{"metadata":{"name":"one"}}', '400 BadRequest'],
  ['a kind that is a number', json, '{"kind":1,"apiVersion":"apis.kcp.io/v1alpha2"}', '400 BadRequest'],
  [
    'kind PartialObjectMetadata',
    json,
    '{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"one"}}',
    '400 BadRequest',
  ],
  [
    'kind PartialObjectMetadata in our version',
    json,
    '{"kind":"PartialObjectMetadata","apiVersion":"apis.kcp.io/v1alpha2","metadata":{"name":"one"}}',
    '422 Invalid',
  ],
  ['metadata that is a string', json, '{"kind":"APIExport","apiVersion":"apis.kcp.io/v1alpha2","metadata":"x"}', '400 BadRequest'],
  ['no name', json, '{"kind":"APIExport","apiVersion":"apis.kcp.io/v1alpha2","metadata":{}}', '422 Invalid'],
  ['a name that is a path', json, raw('../one', ''), '422 Invalid'],
  ['__proto__ as name', json, raw('__proto__', ''), '422 Invalid'],
  [
    'a resourceVersion in a create',
    json,
    '{"kind":"APIExport","apiVersion":"apis.kcp.io/v1alpha2","metadata":{"name":"one","resourceVersion":"7"}}',
    '400 BadRequest',
  ],
  ['annotations over 256 KiB', json, JSON.stringify(anApiExport({ annotations: { long: 'x'.repeat(262_145) } })), '422 Invalid'],
  [
    '9,000 bad labels',
    json,
    JSON.stringify(anApiExport({ labels: Object.fromEntries(Array.from({ length: 9_000 }, (_, i) => [`!${i}`, '!'])) })),
    '422 Invalid',
  ],
  [
    'metadata of more than 512 KiB',
    json,
    JSON.stringify(anApiExport({ managedFields: Array.from({ length: 300_000 }, () => ({})) })),
    '400 BadRequest',
  ],
  [
    '100,000 good labels',
    json,
    JSON.stringify(anApiExport({ labels: Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`l${i}`, ''])) })),
    '400 BadRequest',
  ],
  [
    '__proto__ as an annotation',
    json,
    '{"kind":"APIExport","apiVersion":"apis.kcp.io/v1alpha2","metadata":{"name":"one","annotations":{"__proto__":"a"}}}',
    '422 Invalid',
  ],
  [
    '__proto__ as a label',
    json,
    '{"kind":"APIExport","apiVersion":"apis.kcp.io/v1alpha2","metadata":{"name":"one","labels":{"__proto__":"a"}}}',
    '422 Invalid',
  ],
  ['10,001 levels of JSON', json, raw('one', `,"spec":${deepJson(10_001)}`), '400 BadRequest'],
  ['a million levels of JSON', json, raw('one', `,"spec":${deepJson(1_000_000)}`), '400 BadRequest'],
  ['a million levels of JSON in metadata', json, `{"metadata":${'{"a":'.repeat(500_000)}`, '400 BadRequest'],
  ['a body over 3 MiB', json, Buffer.alloc(3 * mebibyte + 1, 0x20), '413 RequestEntityTooLarge'],
  ['a media type with half a parameter', { 'content-type': 'application/json; x' }, '{}', '415 UnsupportedMediaType'],
  ['a media type whose parameter does not end', { 'content-type': 'application/json; a="b' }, '{}', '415 UnsupportedMediaType'],
  [
    'a media type with thousands of empty parameters, and half a one',
    { 'content-type': `application/json${'; '.repeat(5_000)}"` },
    '{}',
    '415 UnsupportedMediaType',
  ],
  [
    'a media type with two values of a parameter',
    { 'content-type': 'application/json; a=b,application/yaml' },
    '{}',
    '415 UnsupportedMediaType',
  ],
  ['a media type with a value in brackets', { 'content-type': 'application/json; a=(b)' }, '{}', '415 UnsupportedMediaType'],
  ['a media type with two equals signs', { 'content-type': 'application/json; a=b=c' }, '{}', '415 UnsupportedMediaType'],
  ['a media type with an at sign in a name', { 'content-type': 'application/json; a@b=c' }, '{}', '415 UnsupportedMediaType'],
  ['a media type with a slash for a name', { 'content-type': 'application/json; /=x' }, '{}', '415 UnsupportedMediaType'],
  ['a media type with a letter beyond ASCII', { 'content-type': 'application/json; a=\u00e9' }, '{}', '415 UnsupportedMediaType'],
  ['a media type with a no-break space behind it', { 'content-type': 'application/json\u00a0' }, '{}', '415 UnsupportedMediaType'],
  ['a media type with two semicolons', { 'content-type': 'application/json;;' }, '{}', '415 UnsupportedMediaType'],
  ['two media types', { 'content-type': 'application/json, text/plain' }, '{}', '415 UnsupportedMediaType'],
  ['an unknown media type', { 'content-type': 'text/plain' }, raw('one', ''), '415 UnsupportedMediaType'],
  ['protobuf', { 'content-type': 'application/vnd.kubernetes.protobuf' }, Buffer.from([0x6b, 0x38, 0x73, 0]), '415 UnsupportedMediaType'],
  ['CBOR', { 'content-type': 'application/cbor' }, Buffer.from([0xd9, 0xd9, 0xf7]), '415 UnsupportedMediaType'],
  ['__proto__ as media type', { 'content-type': '__proto__' }, raw('one', ''), '415 UnsupportedMediaType'],
  ['a compressed body', { ...json, 'content-encoding': 'gzip' }, raw('one', ''), '415 UnsupportedMediaType'],
  ['no YAML', yaml, 'a: [', '400 BadRequest'],
  ['two YAML documents', yaml, `${yamlHead}---\n${yamlHead}`, '400 BadRequest'],
  ['a billion laughs', yaml, `${yamlHead}spec:\n${laughs.replaceAll(/^/gm, '  ')}`, '400 BadRequest'],
  ['a YAML tag of another language', yaml, `${yamlHead}spec: !!js/function "x"\n`, '400 BadRequest'],
  ['10,000 levels of YAML', yaml, `${yamlHead}spec: ${deepJson(10_000)}`, '400 BadRequest'],
  ['10,000 open YAML sequences', yaml, `${yamlHead}spec: ${'['.repeat(10_000)}`, '400 BadRequest'],
  ['YAML over 256 KiB', yaml, `${yamlHead}spec: ${'x'.repeat(256 * 1024)}`, '413 RequestEntityTooLarge'],
] satisfies [string, Record<string, string>, string | Buffer, string][]) {
  test.serial(`${what} as a body is ${expected}, and stores nothing`, async (t) => {
    const cluster = aCluster();

    const stoodMs = await blockedMs(async () => t.is(await refused('POST', aPath({ cluster }), { headers, body }), expected));

    t.is(await stored(cluster), 0);
    t.true(stoodMs < blockedMsMax, `${stoodMs} ms`);
  });
}

for (const [what, headers, body, expected] of [
  ['no JSON', merge, '{', '400 BadRequest'],
  ['a merge patch that is an array', merge, '[]', '400 BadRequest'],
  ['a merge patch that nests 20,000 deep', merge, `{"a":${deepJson(20_000)}}`, '400 BadRequest'],
  ['a merge patch of the name', merge, '{"metadata":{"name":"other"}}', '400 BadRequest'],
  ['a merge patch of the kind', merge, '{"kind":"Other"}', '422 Invalid'],
  ['a merge patch that removes metadata', merge, '{"metadata":null}', '400 BadRequest'],
  ['a JSON patch that is an object', jsonPatch, '{}', '400 BadRequest'],
  ['a JSON patch of an unknown operation', jsonPatch, '[{"op":"frobnicate","path":"/a"}]', '422 Invalid'],
  ['a JSON patch to nowhere', jsonPatch, '[{"op":"replace","path":"/none/x","value":1}]', '422 Invalid'],
  [
    'a JSON patch over 10,000 operations',
    jsonPatch,
    JSON.stringify(Array.from({ length: 10_001 }, () => ({ op: 'add', path: '/spec/a', value: 1 }))),
    '413 RequestEntityTooLarge',
  ],
  [
    'a JSON patch that doubles a value 40 times',
    jsonPatch,
    JSON.stringify([
      { op: 'add', path: '/spec/a', value: ['x'.repeat(100)] },
      ...Array.from({ length: 40 }, () => ({ op: 'copy', from: '/spec/a', path: '/spec/a/-' })),
    ]),
    '413 RequestEntityTooLarge',
  ],
  ['a patch in YAML', { 'content-type': 'application/apply-patch+yaml' }, 'a: b', '415 UnsupportedMediaType'],
] satisfies [string, Record<string, string>, string, string][]) {
  test.serial(`${what} as a patch is ${expected}, and changes nothing`, async (t) => {
    const cluster = aCluster();
    const client = (await attacked()).client();
    const before = await client.create(aPath({ cluster }), anApiExport());

    const stoodMs = await blockedMs(async () => t.is(await refused('PATCH', aPath({ cluster, name: 'one' }), { headers, body }), expected));

    t.deepEqual(await client.get(aPath({ cluster, name: 'one' })), before);
    t.true(stoodMs < blockedMsMax, `${stoodMs} ms`);
  });
}

test.serial('a path as the cluster of a write is 400, for every caller and every target', async (t) => {
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
    const path = aPath({ cluster: 'root:org', ...(method === 'POST' ? {} : { name: 'one' }) });
    t.is(await refused(method, path, { body: anApiExport(), ...(method === 'PATCH' ? { headers: merge } : {}) }), '400 BadRequest');
  }
});

test.serial(
  'keys that JavaScript treats specially come back as they were sent: in a body, as labels, as annotations, through every patch',
  async (t) => {
    const client = (await attacked()).client();
    const cluster = aCluster();
    const strange = '{"constructor":"b","prototype":"c","toString":"d","hasOwnProperty":"e"}';
    const spec = '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}';
    const body = `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","__proto__":{"kind":"Other"},"metadata":{"name":"one","__proto__":{"name":"two"},"annotations":${strange}},"spec":${spec}}`;

    t.is((await client.raw('POST', aPath({ cluster }), { body })).status, 201);
    await client.raw('PATCH', aPath({ cluster, name: 'one' }), {
      headers: merge,
      body: '{"__proto__":{"polluted":true},"spec":{"__proto__":{"more":1}}}',
    });
    await client.raw('PATCH', aPath({ cluster, name: 'one' }), {
      headers: jsonPatch,
      body: '[{"op":"add","path":"/spec/constructor/prototype/again","value":2}]',
    });

    const { text } = await client.raw('GET', aPath({ cluster, name: 'one' }));
    for (const kept of [
      '"constructor":"b"',
      '"prototype":"c"',
      '"toString":"d"',
      '"spec":{"__proto__":{"polluted":true,"more":1},"constructor":{"prototype":{"polluted":true,"again":2}}}',
      '"__proto__":{"kind":"Other","polluted":true}',
    ])
      t.true(text.includes(kept), `${kept} in ${text}`);
    t.is(({} as Record<string, unknown>)['polluted'], undefined);
    const labelled = await client.raw('POST', aPath({ cluster }), {
      body: `{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":{"name":"two","labels":{"constructor":"b"}}}`,
    });
    t.is(labelled.status, 201);
    t.is((await client.list(`${aPath({ cluster })}?labelSelector=constructor%3Db`)).items.length, 1);
    t.is((await client.list(`${aPath({ cluster })}?labelSelector=toString`)).items.length, 0);
    t.is((await client.raw('GET', `${aPath({ cluster })}?__proto__=1&constructor=2&pretty=__proto__`)).status, 200);
  },
);

test.serial('10,000 levels of JSON are stored and come back, in a list, in YAML, indented and in a table, live and later', async (t) => {
  const server = await attacked();
  const client = server.client();
  const path = aPath({ cluster: aCluster(), resource: 'apiexportendpointslices', version: 'v1alpha1' });
  const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
  const seen: unknown[] = [];
  const watching = (async () => {
    for await (const { object } of client.watch(`${path}?watch=true&timeoutSeconds=2`, { headers: table }))
      seen.push((object['rows'] as { cells: unknown[] }[])[0]?.cells.slice(0, 2));
  })();
  await until(async () => (await server.metric('strata_watches_open')) > 0);
  const deep = deepJson(9_990);

  const created = await client.raw('POST', path, {
    body: `{"apiVersion":"apis.kcp.io/v1alpha1","kind":"APIExportEndpointSlice","metadata":{"name":"deep"},"spec":{"export":{"name":${deep}}}}`,
  });

  t.is(created.status, 201);
  const stoodMs = await blockedMs(async () => {
    for (const [ask, headers] of [
      [path, {}],
      [`${path}/deep`, {}],
      [`${path}/deep`, { accept: 'application/yaml' }],
      [`${path}/deep?pretty=true`, {}],
      [path, table],
    ] as const) {
      const { status, text } = await client.raw('GET', ask, { headers });
      t.is(status, 200, ask);
      t.true(text.length < mebibyte, `${ask}: ${text.length}`);
    }
  });
  t.true((await client.raw('GET', `${path}/deep`)).text.includes(deep));
  t.true(stoodMs < blockedMsMax, `${stoodMs} ms`);
  await watching;
  t.deepEqual(seen.length, 1);
});

test.serial('a large object is never indented or converted to YAML, because either would block all requests', async (t) => {
  const client = (await attacked()).client();
  const path = aPath({ cluster: aCluster() });
  await client.raw('POST', path, { body: raw('one', `,"spec":[${'1,'.repeat(1_000_000)}1]`) });

  const stoodMs = await blockedMs(async () => {
    for (const [ask, headers] of [
      [`${path}/one?pretty=true`, {}],
      [`${path}/one`, { accept: 'application/yaml' }],
      [path, { accept: 'application/yaml' }],
    ] as const) {
      const answer = await client.raw('GET', ask, { headers });
      t.is(answer.headers['content-type'], 'application/json');
      t.true(answer.text.endsWith('}'));
    }
  });

  t.true(stoodMs < blockedMsMax, `${stoodMs} ms`);
});

test.serial(
  'a body without a length is cut off at 3 MiB with a 413, over HTTP/1.1 and HTTP/2, and the stream is not left open',
  async (t) => {
    const cluster = aCluster();
    const path = aPath({ cluster });
    const chunk = Buffer.alloc(mebibyte, 0x20);
    const h1 = await aSocket(`POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`);
    const session = await aSession();
    const h2 = request(session, { ':method': 'POST', ':path': path, ...json }, false);
    let text = '';
    h2.on('data', (data: Buffer) => (text += data.toString()));

    for (let i = 0; i < 4; i++) {
      h1.socket.write(Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]));
      h2.write(chunk);
      await sleep(5);
    }

    await until(() => h1.read().includes('RequestEntityTooLarge') || h1.closed());
    await until(() => h2.closed);
    t.like(JSON.parse(text), { code: 413, reason: 'RequestEntityTooLarge' });
    await until(() => h1.closed());
    t.is(await stored(cluster), 0);
    session.destroy();
  },
);

test.serial('Expect: 100-continue with too long a body is refused before the client sends the body', async (t) => {
  const path = aPath({ cluster: aCluster() });

  const large = await aSocket(`POST ${path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: ${100 * mebibyte}\r\n\r\n`);
  await until(() => large.read().includes('RequestEntityTooLarge'));
  await until(() => large.closed());
  const body = JSON.stringify(anApiExport());
  const small = await aSocket(`POST ${path} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`);
  await until(() => small.read().startsWith('HTTP/1.1 100 Continue'));
  small.socket.write(body);
  await until(() => small.read().includes('HTTP/1.1 201'));
  small.socket.destroy();
  t.pass();
});

test.serial('trickling headers and a trickling body lose their connection after their timeout', async (t) => {
  const cluster = aCluster();
  const path = aPath({ cluster });
  const session = await aSession();
  const slow = [
    await aSocket('GET /healthz HTTP/1.1\r\nHost: x\r\n'),
    await aSocket(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{`),
  ];
  const stream = request(session, { ':method': 'POST', ':path': path }, false);
  const trickle = setInterval(() => {
    slow[0]?.socket.write('X-A: b\r\n');
    slow[1]?.socket.write(' ');
    if (!stream.closed) stream.write(' ');
  }, 100);

  t.teardown(() => clearInterval(trickle));

  await until(() => slow.every(({ closed }) => closed()) && stream.closed, 9_000);

  t.is(await stored(cluster), 0);
  session.destroy();
});

test.serial('a client that vanishes in the middle of a body has stored nothing, and the server keeps nothing of it', async (t) => {
  const server = await attacked();
  const cluster = aCluster();
  const session = await aSession();
  const body = raw('one', '');

  for (let i = 0; i < 20; i++) {
    const h1 = await aSocket(
      `POST ${aPath({ cluster })} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, -1)}`,
    );
    h1.socket.destroy();
    const stream = request(session, { ':method': 'POST', ':path': aPath({ cluster }) }, false);
    stream.write(body.slice(0, -1));
    stream.close(8);
  }
  await sleep(100);

  t.is(await stored(cluster), 0);
  t.is((await server.client().raw('GET', '/readyz')).status, 200);
  session.destroy();
});

test.serial('a flood of headers is refused or cut off, over HTTP/1.1 and HTTP/2', async (t) => {
  const many = await aSocket(
    `GET /healthz HTTP/1.1\r\nHost: x\r\n${Array.from({ length: 5_000 }, (_, i) => `x-${i}: y\r\n`).join('')}\r\n`,
  );
  const long = await aSocket(`GET /healthz HTTP/1.1\r\nHost: x\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`);
  const session = await aSession();
  const stream = request(session, { ':path': '/healthz', 'x-long': 'y'.repeat(100_000) });
  let status: unknown;
  stream.on('response', (headers) => (status = headers[':status']));

  await until(() => (many.closed() || many.read() !== '') && long.closed());
  await until(() => stream.closed || session.closed || status !== undefined);

  t.not(status, 200);
  session.destroy();
});

test.serial('streams opened and reset by the thousand leave no watch, no request and no error behind', async (t) => {
  const server = await attacked();
  const sessions = await Promise.all([0, 1, 2].map(() => aSession()));
  const paths = [`${aPath()}?watch=true`, aPath(), aPath({ name: 'none' }), '/healthz'];

  const stoodMs = await blockedMs(async () => {
    for (let round = 0; round < 20; round++) {
      for (const session of sessions)
        for (let i = 0; i < 20; i++)
          if (!session.closed && !session.destroyed) request(session, { ':path': paths[i % paths.length] }).close(8);
      await sleep(5);
    }
  });

  for (const session of sessions) session.destroy();
  await server.untilNoWatch();
  t.is((await server.client().raw('GET', aPath())).status, 200);
  t.true(stoodMs < blockedMsMax, `${stoodMs} ms`);
});

test.serial('streams above the limit of a connection are refused, and the others are served', async (t) => {
  const session = await aSession();
  const server = await attacked();

  const streams = Array.from({ length: 150 }, () => request(session, { ':path': `${aPath()}?watch=true` }));
  await until(async () => (await server.metric('strata_watches_open')) >= 100);
  await sleep(50);

  t.is(await server.metric('strata_watches_open'), 100);
  for (const stream of streams) stream.close(8);
  session.destroy();
  await server.untilNoWatch();
});

test.serial('pipelined requests on one connection are answered in order; anything but HTTP is closed', async (t) => {
  const junk = await aSocket('\x16\x03\x01 this is no HTTP\r\n\r\n');
  const smuggled = await aSocket(
    `POST ${aPath()} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n`,
  );
  const piped = await aSocket('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20));

  await until(() => junk.closed() && smuggled.closed());
  await until(() => piped.read().split('HTTP/1.1 200 OK').length === 21);

  t.false(smuggled.read().includes('strata_'));
  piped.socket.destroy();
});
