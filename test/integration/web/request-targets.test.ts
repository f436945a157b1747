/**
 * Request targets, byte for byte: one that others would read as another path must be refused and
 * change nothing. The requests are raw, because clients correct what they send.
 */
import { test } from '../../support/test.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp1 } from '../../support/raw-http1.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { shared } from '../../support/shared.js';
import { TestServer, type Teardown } from '../../support/test-server.js';

const cluster = 'opaque';
const place = `/services/cache/shards/amber/clusters/${cluster}`;
const rbac = `${place}/apis/rbac.authorization.k8s.io/v1`;
const apiVersion = 'rbac.authorization.k8s.io/v1';
const collections = [`${rbac}/clusterroles`, `${rbac}/roles`, aPath({ cluster, shard: 'birch' })];

/** The status of the answer; 0 if the request or its connection ends without one. */
type Ask = (method: string, target: string, body?: string) => Promise<number>;

const protocols = ['HTTP/1.1', 'HTTP/2'] as const;

const known = shared(
  async () => {
    const server = await TestServer.start();
    const client = server.client();
    const create = (path: string, kind: string, metadata: object): Promise<unknown> => client.create(path, { apiVersion, kind, metadata });
    for (const name of ['a', 'b']) await create(`${rbac}/clusterroles`, 'ClusterRole', { name });
    for (const namespace of ['x', 'y']) await create(`${rbac}/namespaces/${namespace}/roles`, 'Role', { name: 'a', namespace });
    await client.create(aPath({ cluster, shard: 'birch' }), anApiExport());

    return { server, client };
  },
  ({ server }) => server.close(),
);

/** Opens a connection of the test's own. */
async function asking(t: Teardown, protocol: (typeof protocols)[number]): Promise<Ask> {
  const { port, master: as } = (await known()).server;
  if (protocol === 'HTTP/2') {
    const raw = await RawHttp2.open({ port, as });
    t.teardown(() => raw.destroy());
    return async (method, target, body = '') => {
      const stream = raw.request(method, target, { ends: body === '' });
      if (body !== '') raw.data(stream.id, Buffer.from(body), true);
      return (await raw.answered(stream)).status;
    };
  }
  const raw = await RawHttp1.open({ port, as });
  t.teardown(() => raw.destroy());
  return async (method, target, body = '') => {
    const index = raw.answers.length;
    raw.head(method, target, { 'content-length': String(Buffer.byteLength(body)) });
    raw.send(body);
    return (await raw.answer(index))?.status ?? 0;
  };
}

async function stored(): Promise<string> {
  const { client } = await known();
  const lists = await Promise.all(collections.map((path) => client.list(path)));
  return JSON.stringify(lists.map(({ items }) => items));
}

type Targets = readonly (readonly [target: string, expected: number])[];

async function answers(ask: Ask, method: string, targets: Targets): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const [target] of targets) lines.push(lineOf(target, await ask(method, target)));
  return lines;
}

function expectedOf(targets: Targets): readonly string[] {
  return targets.map(([target, expected]) => lineOf(target, expected));
}

function lineOf(target: string, status: number): string {
  return `${status} ${target.slice(0, 200)}`;
}

const refused: Targets = [
  [`${rbac}/clusterroles/.`, 400],
  [`${rbac}/clusterroles/..`, 400],
  [`${rbac}/clusterroles/%2E`, 400],
  [`${rbac}/clusterroles/%2e%2E`, 400],
  [`${rbac}/clusterroles/.%2e`, 400],
  [`${rbac}/clusterroles/x/..`, 400],
  [`${rbac}/clusterroles/x/%2e%2e`, 400],
  [`${rbac}/clusterroles/./a`, 400],
  [`${rbac}/roles/../clusterroles/a`, 400],
  [`${rbac}/clusterroles/a/.`, 400],
  [`${rbac}/clusterroles/?x=/..`, 400],
  [`${rbac}/namespaces/%2E%2E/roles`, 400],
  [`${rbac}/namespaces/../roles`, 400],
  [`${rbac}/namespaces/./roles`, 400],
  [`${rbac}/namespaces/x/../roles`, 400],
  [`${rbac}/namespaces/x%2F..%2Fy/roles`, 400],
  [`${rbac}/namespaces/x%2Fy/roles`, 400],
  [`${rbac}/namespaces//roles`, 400],
  [`${place}/../${cluster}/apis/rbac.authorization.k8s.io/v1/clusterroles/a`, 400],
  [`/services/../services/cache/shards/amber/clusters/${cluster}/apis/rbac.authorization.k8s.io/v1/clusterroles/a`, 400],
  [`${rbac}/clusterroles#`, 400],
  [`${rbac}/clusterroles#/a`, 400],
  [`${rbac}/clusterroles/#a`, 400],
  [`${rbac}/clusterroles/a#b`, 400],
  [`${rbac}/clusterroles?x#/a`, 400],
  [`${rbac}\\clusterroles`, 400],
  [`${rbac}/clusterroles\\a`, 400],
  [`${rbac}/clusterroles/\\`, 400],
  [`${rbac}/clusterroles/..\\clusterroles`, 400],
  [`${rbac}/clusterroles/`, 400],
  [`${rbac}/clusterroles/a/`, 400],
  [`${rbac}/clusterroles//`, 400],
  [`${rbac}/clusterroles//a`, 400],
  [`${rbac}//clusterroles/a`, 400],
  [`/${rbac}/clusterroles/a`, 400],
  [`${rbac}/clusterroles%2Fa`, 400],
  [`${rbac}/clusterroles/a%2Fb`, 400],
  [`${rbac}/clusterroles/a%25`, 400],
  [`${rbac}/clusterroles/%252e`, 400],
  [`${rbac}/clusterroles/%25%32%65`, 400],
  [`${rbac}/clusterroles/%`, 400],
  [`${rbac}/clusterroles/%2`, 400],
  [`${rbac}/clusterroles/%zz`, 400],
  [`${rbac}/clusterroles/%ff`, 400],
  [`${rbac}/clusterroles/%c0%ae`, 400],
  [`${rbac}/clusterroles/%ed%a0%80`, 400],
  [`${rbac}/clusterroles/%00`, 404],
  [`${rbac}/clusterroles/a%00`, 404],
  [`${rbac}/clusterroles/a;x`, 404],
  [`${rbac}/clusterroles/a%3Fb`, 404],
  [`${rbac}/clusterroles/${'a'.repeat(10_000)}`, 404],
  [`${rbac}/clusterroles/a/b/c`, 404],
  [`${rbac}/watch/clusterroles`, 405],
  [`${rbac}/watch/clusterroles/a`, 405],
  [`${rbac}/watch/roles`, 405],
  [`${rbac}/watch/namespaces/x/roles`, 405],
  [`${rbac}/watch/namespaces/x/roles/a`, 405],
  ['/services/cache/shards/birch/', 400],
  ['/services/cache/shards/birch#', 400],
  ['/services/cache/shards/birch#/clusters/x', 400],
  ['/services/cache/shards/x/../birch', 400],
  ['/services/cache/shards/%2e/birch', 400],
  ['/services/cache/shards/birch/.', 400],
  ['/services/cache/shards\\birch', 400],
  ['/services/cache/shards\\birch#', 400],
  ['/services/cache/shards/birch%2F', 400],
  ['/services/cache/SHARDS/birch', 400],
  ['/Services/Cache/shards/birch', 400],
  ['/services/cache/shards/birch?dryRun=All', 400],
  ['/services/cache/shards/birch?dryRun=', 400],
  ['/services/cache/shards/birch?x=/clusters/y', 400],
  ['/services/cache/caches/birch?dryRun=All', 400],
];

/** Targets that HTTP/2 cannot express. */
const refusedOverHttp1: Targets = [
  [`https://localhost${rbac}/clusterroles`, 400],
  ['https://localhost/services/cache/shards/birch', 400],
  ['*', 400],
];

for (const protocol of protocols) {
  test(`a target that is not a normalized path, or has an invalid name, deletes nothing, over ${protocol}`, async (t) => {
    const ask = await asking(t, protocol);
    const targets = protocol === 'HTTP/2' ? refused : [...refused, ...refusedOverHttp1];
    const before = await stored();

    t.deepEqual(await answers(ask, 'DELETE', targets), expectedOf(targets));
    t.is(await stored(), before);
  });

  test(`a read refuses such targets as well, over ${protocol}`, async (t) => {
    const ask = await asking(t, protocol);

    const targets: Targets = [
      [`${rbac}/clusterroles/.`, 400],
      [`${rbac}/x/../clusterroles`, 400],
      [`${rbac}/clusterroles/%2e%2e/clusterroles/a`, 400],
      [`${rbac}/clusterroles/a#`, 400],
      [`${rbac}\\clusterroles`, 400],
      [`${place}/api/%2e`, 400],
      ['/services/apiexport/root/%2e%2e/clusters/*/api/v1', 400],
      ['/services/apiexport/root/a%2Fb/clusters/*/api/v1', 400],
      ['/services/apiexport/root/x/../x/clusters/*/api/v1', 400],
      [`/console/objects/x/..${place}/api`, 400],
      ['/console/../metrics', 400],
      ['/metrics#', 400],
      ['/x/..%2fmetrics', 400],
      ['/readyz/../metrics', 400],
      ['/METRICS', 400],
      [`${rbac}/clusterroles/`, 200],
      ['/metrics?/clusters/', 200],
      ['/readyz?exclude=/clusters/x', 200],
      [`${rbac}/clusterroles/%61`, 200],
      ['/shards/amber/clusters/opaque/%61pis', 200],
    ];
    t.deepEqual(await answers(ask, 'GET', targets), expectedOf(targets));
  });

  test(`a name with unusual characters is read and deleted as it is, and no other object is, over ${protocol}`, async (t) => {
    const { client } = await known();
    const ask = await asking(t, protocol);
    const path = `/services/cache/shards/amber/clusters/${protocol === 'HTTP/2' ? 'odd2' : 'odd1'}/apis/${apiVersion}/clusterroles`;
    const names = [
      'we#ird',
      'back\\slash',
      'ä',
      'q?x',
      'a;b',
      'sp ace',
      'plus+',
      'a&b=c',
      '...',
      '.a',
      'a..',
      '*',
      'system:node',
      '~!@$^(){}|<>"',
    ];
    for (const name of names) await client.create(path, { apiVersion, kind: 'ClusterRole', metadata: { name } });

    for (const [at, name] of names.entries()) {
      const one = `${path}/${encodeURIComponent(name)}`;
      t.is((await client.get(one)).metadata.name, name);
      t.is(await ask('DELETE', one), 200, name);
      t.is((await client.list(path)).items.length, names.length - at - 1, name);
    }
  });

  test(`the removal of a shard or cache takes no options in its body, over ${protocol}`, async (t) => {
    const ask = await asking(t, protocol);
    const before = await stored();

    for (const path of ['/services/cache/shards/birch', '/services/cache/shards/birch/held'])
      t.is(await ask('DELETE', path, '{"dryRun":["All"]}'), 400, path);

    t.is(await stored(), before);
  });
}

for (const [what, text, status] of [
  ['a method that nobody knows', 'BREW /version HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['a method in small letters', 'get /version HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['a byte outside ASCII in its target', 'DELETE /clusterroles/\u00e9 HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['a tab in its target', 'GET /version\tx HTTP/1.1\r\nHost: x\r\n\r\n', 400],
  ['a space before the colon of a header', 'GET /version HTTP/1.1\r\nHost : x\r\n\r\n', 400],
  ['two lengths', 'POST /version HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400],
  ['no version', 'GET /version\r\n\r\n', 400],
  ['headers of 20 KiB', `GET /version HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(20 * 1024)}\r\n\r\n`, 431],
  ['junk behind it', 'GET /version HTTP/1.1\r\nHost: x\r\n\r\n\u0001\r\n\r\n', 'nothing'],
] as const)
  test(`a request that is not valid HTTP/1.1 is answered before the connection closes: ${what}`, async (t) => {
    const { port, master: as } = (await known()).server;
    const raw = await RawHttp1.open({ port, as });
    t.teardown(() => raw.destroy());
    raw.send(text);
    t.is((await raw.answer(0))?.status ?? 'nothing', status);
    await raw.until(() => raw.isClosed, 'the end of the connection');
  });
