/** Who may do what (P16, D8, F31): members of system:masters everything, everyone else health. */
import test from 'ava';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KubeClient, KubeStatus } from '../support/kube-client.js';
import { aPath, anApiExport } from '../support/objects.js';
import { TestAuthority } from '../support/test-authority.js';
import { TestServer } from '../support/test-server.js';

type Known = Readonly<{ server: TestServer; strangers: readonly (readonly [string, KubeClient])[] }>;

const known: Promise<Known> = (async () => {
  const server = await TestServer.start();
  const folder = mkdtempSync(join(tmpdir(), 'strata-other-ca-'));
  const other = await TestAuthority.create(folder);
  const certificates = [
    ['nobody', null],
    ['a certificate of another CA', await other.issue({ user: 'admin', groups: ['system:masters'] })],
    ['a certificate without system:masters', await server.authority.issue({ user: 'dev', groups: ['developers'] })],
    ['a certificate without groups', await server.authority.issue({ user: 'system:masters', groups: [] })],
    ['a shard’s certificate', await server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] })],
  ] as const;
  rmSync(folder, { recursive: true });
  await server.client().create(aPath(), anApiExport());
  const strangers = certificates.flatMap(([who, as]) =>
    [false, true].map((http2) => [`${who}, HTTP/${http2 ? 2 : '1.1'}`, server.client({ as, http2 })] as const),
  );
  return { server, strangers };
})();

test.after.always(async () => (await known).server.close());

const requests = [
  ['GET', aPath()],
  ['GET', aPath({ name: 'one' })],
  ['HEAD', aPath({ name: 'one' })],
  ['GET', aPath({ name: 'none' })],
  ['GET', `${aPath()}?watch=true`],
  ['POST', aPath()],
  ['PUT', aPath({ name: 'one' })],
  ['PATCH', aPath({ name: 'one' })],
  ['DELETE', aPath({ name: 'one' })],
  ['DELETE', aPath()],
  ['OPTIONS', aPath()],
  ['GET', aPath({ resource: 'unknown' })],
  ['GET', '/services/cache/shards/amber/clusters/acme/apis'],
  ['GET', '/services/cache/shards/amber/clusters/acme/openapi/v3'],
  ['GET', '/services/cache/shards/amber/clusters/acme/healthz'],
  ['GET', '/services/cache/shards/BAD/clusters/acme/apis'],
  ['GET', '/services/cache/shards/amber/clusters/%zz/apis'],
  ['GET', '/version'],
  ['GET', '/metrics'],
  ['GET', '/'],
  ['GET', '//'],
  ['POST', '/healthz'],
  ['GET', '/nothing'],
] as const;

test('everyone else is answered 403 to everything, as a Status that names them, and changes nothing', async (t) => {
  const { server, strangers } = await known;

  for (const [who, client] of strangers) {
    for (const [method, path] of requests) {
      const body = method === 'POST' || method === 'PUT' ? anApiExport({ name: 'theirs' }) : undefined;
      const answer = await client.raw(method, path, body === undefined ? {} : { body });
      t.is(answer.status, 403, `${who}: ${method} ${path}`);
      if (method === 'HEAD') continue;
      const status = JSON.parse(answer.text) as KubeStatus;
      t.is(status.reason, 'Forbidden');
      t.regex(status.message ?? '', /User "[^"]+" cannot /);
    }
  }

  t.is((await server.client().list(aPath({ cluster: '*', shard: '*' }))).items.length, 1);
});

test('health is for everybody', async (t) => {
  const { strangers } = await known;

  for (const [who, client] of strangers)
    for (const path of ['/healthz', '/livez', '/readyz']) t.deepEqual([who, (await client.raw('GET', path)).text], [who, 'ok']);
});

test('the refusal is in kube’s words', async (t) => {
  const { strangers } = await known;
  const [, anonymous] = strangers[0]!;

  const { message, details } = JSON.parse((await anonymous.raw('DELETE', aPath({ name: 'one' }))).text) as KubeStatus;

  t.is(
    message,
    'apiexports.apis.kcp.io "one" is forbidden: User "system:anonymous" cannot delete resource "apiexports" in API group "apis.kcp.io" at the cluster scope',
  );
  t.deepEqual(details, { name: 'one', group: 'apis.kcp.io', kind: 'apiexports' });
});

test('without a client CA nobody is believed', async (t) => {
  const server = await TestServer.start({ flags: { 'client-ca-file': '' } });
  t.teardown(() => server.close());

  t.is((await server.client().raw('GET', aPath())).status, 403);
});
