/**
 * Who may do what (F18, F31): members of system:masters everything; shards and caches read
 * everything, and a shard writes its own objects; everyone else only reads health.
 */
import { someOf } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KubeClient, KubeStatus } from '../../support/kube-client.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp1 } from '../../support/raw-http1.js';
import { TestAuthority } from '../../support/test-authority.js';
import { shared } from '../../support/shared.js';
import { aServer, TestServer } from '../../support/test-server.js';

type Clients = readonly (readonly [string, KubeClient])[];
type Known = Readonly<{ server: TestServer; strangers: Clients; amber: KubeClient; readers: Clients }>;

const shardAmber = { user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] };

const known = shared(
  async (): Promise<Known> => {
    const server = await TestServer.start();
    const folder = mkdtempSync(join(tmpdir(), 'strata-other-ca-'));
    const other = new TestAuthority(folder);
    const certificates = [
      ['nobody', null],
      ['a certificate of another CA', other.issue({ user: 'admin', groups: ['system:masters'] })],
      ['a certificate without system:masters', server.authority.issue({ user: 'dev', groups: ['developers'] })],
      ['a certificate without groups', server.authority.issue({ user: 'system:masters', groups: [] })],
      ['a shard’s certificate of another CA', other.issue(shardAmber)],
      ['a shard’s certificate that has run out', server.authority.issue({ ...shardAmber, validityDays: -1 })],
      ['a shard’s certificate without the group', server.authority.issue({ ...shardAmber, groups: [] })],
      ['a certificate of two shards', server.authority.issue({ ...shardAmber, uris: ['strata://shard/amber', 'strata://shard/birch'] })],
      ['a syncer’s certificate', server.authority.issue({ user: 'one', groups: ['strata'], uris: ['strata://syncer/one'] })],
      ['a shard’s name in the CN', server.authority.issue({ user: 'strata://shard/amber', groups: ['strata'] })],
    ] as const;
    rmSync(folder, { recursive: true });
    await server.client().create(aPath(), anApiExport());
    const strangers = certificates.flatMap(([who, as]) =>
      [false, true].map((http2) => [`${who}, HTTP/${http2 ? 2 : '1.1'}`, server.client({ as, http2 })] as const),
    );
    const amber = server.client({ as: server.authority.issue(shardAmber) });
    const [birch, cache] = ['strata://shard/birch', 'strata://cache/region-1'].map((uri) =>
      server.authority.issue({ user: 'amber', groups: ['strata'], uris: [uri] }),
    );
    const readers = [
      ['another shard', server.client({ as: birch! })],
      ['a cache', server.client({ as: cache! })],
    ] as const;
    return { server, strangers, amber, readers };
  },
  ({ server }) => server.close(),
);

const writes = [
  ['POST', aPath()],
  ['PUT', aPath({ name: 'one' })],
  ['PATCH', aPath({ name: 'one' })],
  ['DELETE', aPath({ name: 'one' })],
  ['DELETE', aPath()],
] as const;

const requests = [
  ...writes,
  ['GET', aPath()],
  ['GET', aPath({ name: 'one' })],
  ['HEAD', aPath({ name: 'one' })],
  ['GET', aPath({ name: 'none' })],
  ['GET', `${aPath()}?watch=true`],
  ['OPTIONS', aPath()],
  ['GET', aPath({ resource: 'unknown' })],
  ['GET', '/services/cache/shards/amber/clusters/acme/apis'],
  ['GET', '/services/cache/shards/amber/clusters/acme/openapi/v3'],
  ['GET', '/services/cache/shards/amber/clusters/acme/healthz'],
  ['GET', '/services/cache/shards/BAD/clusters/acme/apis'],
  ['GET', '/services/cache/shards/amber/clusters/%zz/apis'],
  ['GET', '/version'],
  ['GET', '/metrics'],
  ['GET', '/services/cache/status'],
  ['GET', '/services/cache/freshness?resource=apiexports'],
  ['GET', '/services/cache/freshness?nothing'],
  ['GET', '/services/cache/look-up?group=apis.kcp.io&version=v1alpha2&resource=apiexports&cluster=acme&name=one'],
  ['GET', '/services/cache/look-up?nothing'],
  ['DELETE', '/services/cache/shards/amber'],
  ['DELETE', '/services/cache/shards/BAD'],
  ['GET', '/'],
  ['GET', '//'],
  ['POST', '/healthz'],
  ['GET', '/nothing'],
] as const;

test.serial('everyone else gets 403 for everything, as a Status that names them, and changes nothing', async (t) => {
  const { server, strangers } = await known();

  for (const [who, client] of strangers) {
    for (const [method, path] of someOf(requests)) {
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

/**
 * The headers that kubectl sends for --as, --as-group, --as-uid and --as-user-extra, and some that
 * it does not send.
 */
const othersNames: readonly (readonly [status: number, headers: Record<string, string | string[]>])[] = [
  [403, { 'Impersonate-User': 'nobody' }],
  [403, { 'impersonate-user': 'cache-client', 'Impersonate-Group': ['system:masters', 'developers'] }],
  [403, { 'Impersonate-User': 'nobody', 'Impersonate-Uid': '7', 'Impersonate-Extra-Scopes': 'view' }],
  [400, { 'Impersonate-User': '' }],
  [400, { 'Impersonate-Group': 'developers' }],
  [400, { 'Impersonate-Uid': '7' }],
  [400, { 'Impersonate-Extra-Scopes': 'view' }],
  [400, { 'IMPERSONATE-Anything': 'x' }],
];

test.serial('an impersonation request is refused before anything is done, whoever sends it', async (t) => {
  const { server, amber, strangers } = await known();
  const master = server.client();
  const others = ['/livez', '/readyz', '/healthz', '/console', '/console/overview', '/services/apiexport/root/one/clusters/*/apis'];
  const asked = [
    ...requests,
    ...others.map((path) => ['GET', path] as const),
    ['POST', '/console/links'] as const,
    ['POST', aPath({ group: 'authentication.k8s.io', version: 'v1', resource: 'selfsubjectreviews' })] as const,
  ];
  const before = (await master.raw('GET', aPath({ name: 'one' }))).text;

  for (const [who, client] of [['a master', master], ['a shard', amber], ...strangers.slice(0, 2)] as Clients)
    for (const [expected, headers] of othersNames)
      for (const [method, path] of someOf(asked)) {
        const body = method === 'POST' || method === 'PUT' ? anApiExport({ name: 'theirs' }) : undefined;
        const { status, text } = await client.raw(method, path, { headers, ...(body !== undefined && { body }) });
        const what = `${who}: ${method} ${path} ${JSON.stringify(headers)}`;
        t.is(status, expected, what);
        if (method !== 'HEAD')
          t.regex((JSON.parse(text) as KubeStatus).message ?? '', /^impersonation is not served here: .* impersonate-/, what);
      }

  t.is((await master.raw('GET', aPath({ name: 'one' }))).text, before);
  t.is((await master.list(aPath({ cluster: '*', shard: '*' }))).items.length, 1);
});

test.serial('over HTTP/1.1, an impersonation header is found after any number of others', async (t) => {
  const { server } = await known();
  const raw = await RawHttp1.open({ port: server.port, as: server.master });
  t.teardown(() => raw.destroy());

  raw.send(`DELETE ${aPath({ name: 'one' })} HTTP/1.1\r\nHost: x\r\n${'a:\r\n'.repeat(2_500)}Impersonate-User: nobody\r\n\r\n`);

  t.is((await raw.answer(0))?.status, 403);
  t.is((await server.client().raw('GET', aPath({ name: 'one' }))).status, 200);
});

test.serial('shards and caches read everything, and write nothing of another shard', async (t) => {
  const { server, amber, readers } = await known();

  for (const [who, client] of [...readers, ['the shard itself', amber] as const]) {
    for (const shard of ['amber', '*']) t.is((await client.list(aPath({ shard, cluster: '*' }))).items.length, 1, who);
    t.is((await client.raw('GET', aPath({ name: 'one' }))).status, 200, who);
    for (const path of ['/services/cache/shards/amber/clusters/acme/apis', '/version', '/metrics'])
      t.is((await client.raw('GET', path)).status, 200, `${who}: ${path}`);
    t.is((await client.raw('GET', aPath({ name: 'none' }))).status, 404, who);
    t.is((await client.raw('GET', '/services/cache/shards/BAD/clusters/acme/apis')).status, 400, who);
  }
  const before = (await server.client().raw('GET', aPath({ name: 'one' }))).text;
  for (const [who, client] of readers) {
    for (const [method, path] of writes) {
      const answer = await client.raw(method, path, method === 'POST' ? { body: anApiExport({ name: 'theirs' }) } : {});
      t.is(answer.status, 403, `${who}: ${method} ${path}`);
    }
  }
  t.is((await server.client().raw('GET', aPath({ name: 'one' }))).text, before);
});

test.serial('a shard writes its own objects with every verb, and gets 403 for any other place', async (t) => {
  const { server, amber } = await known();
  const own = { shard: 'amber', cluster: 'written' };
  const theirs = { shard: 'birch', cluster: 'elsewhere' };

  await server.client().create(aPath(theirs), anApiExport({ name: 'mine' }));
  const kept = (await server.client().raw('GET', aPath({ ...theirs, name: 'mine' }))).text;
  const created = await amber.create(aPath(own), anApiExport({ name: 'mine' }));
  t.is((await amber.raw('PUT', aPath({ ...own, name: 'mine' }), { body: { ...created, spec: { n: 2 } } })).status, 200);
  await amber.mergePatch(aPath({ ...own, name: 'mine' }), { spec: { n: 3 } });
  t.is((await amber.raw('DELETE', aPath({ ...own, name: 'mine' }))).status, 200);
  t.is((await amber.raw('DELETE', aPath(own))).status, 200);

  const elsewhere = [
    aPath(theirs),
    aPath({ ...theirs, shard: '*' }),
    aPath({ ...theirs, shard: '%62irch' }),
    aPath({ ...theirs, shard: 'amber%2F..%2Fbirch' }),
    aPath(theirs).replace('/services/cache', ''),
    '/services/cache/shards/birch',
    '/services/cache/shards/amber',
    '/services/cache/shards/amber/clusters/written',
  ];
  for (const path of elsewhere) {
    t.is((await amber.raw('POST', path, { body: anApiExport({ name: 'other' }) })).status, 403, `POST ${path}`);
    t.is((await amber.raw('DELETE', path)).status, 403, `DELETE ${path}`);
  }
  const claims = { ...anApiExport({ name: 'claims' }), metadata: { name: 'claims', annotations: { 'kcp.io/shard': 'birch' } } };
  await amber.raw('POST', aPath(own), { body: claims });

  t.is((await server.client().raw('GET', aPath({ ...theirs, name: 'mine' }))).text, kept);
  t.is((await server.client().list(aPath({ ...theirs, cluster: '*' }))).items.length, 1);
  await server.client().raw('DELETE', aPath(theirs));
  await server.client().raw('DELETE', aPath(own));
});

test.serial('an unauthorized write is answered 403, whatever else is wrong with it; an authorized one gets that other error', async (t) => {
  const { server, amber, readers } = await known();
  const wildcard = aPath({ shard: '*' });
  const [, birch] = readers[0]!;

  t.is((await birch.raw('POST', wildcard, { body: 'junk' })).status, 403);
  t.is((await birch.raw('POST', aPath({ cluster: 'root:org' }), { body: 'junk' })).status, 403);
  t.is((await amber.raw('POST', aPath({ cluster: '*' }), { body: anApiExport() })).status, 400);
  t.is((await server.client().raw('POST', wildcard, { body: anApiExport() })).status, 400);
});

test.serial('every 403 is counted, and logged with caller, verb and path, and never with the query', async (t) => {
  const server = await aServer(t);
  const uris = ['strata://shard/amber'];
  const amber = server.client({ as: server.authority.issue({ user: 'amber', groups: ['strata'], uris }) });
  const stranger = server.client({ as: null });
  t.regex(
    (await server.client().raw('GET', '/metrics')).text,
    /^strata_refusals_total\{reason="InternalError"\} 0$/m,
    'the metric exists before the first one',
  );
  const before = await server.metric('strata_refusals_total');
  const logged = server.logged.length;

  await amber.raw('DELETE', `${aPath({ shard: 'birch', name: 'one' })}?token=secret`);
  await stranger.raw('PATCH', '/nothing?token=secret');

  t.is(await server.metric('strata_refusals_total'), before + 2);
  t.deepEqual(
    server.logged.slice(logged).filter(({ event }) => event === 'request.forbidden'),
    [
      {
        level: 'warn',
        event: 'request.forbidden',
        fields: {
          user: 'amber',
          groups: ['strata'],
          speaksFor: { kind: 'shard', shard: 'amber' },
          verb: 'delete',
          path: aPath({ shard: 'birch', name: 'one' }),
        },
      },
      {
        level: 'warn',
        event: 'request.forbidden',
        fields: { user: 'system:anonymous', groups: ['system:unauthenticated'], verb: 'patch', path: '/nothing' },
      },
    ],
  );
});

test.serial('everybody may read health', async (t) => {
  const { strangers } = await known();

  for (const [who, client] of strangers)
    for (const path of ['/healthz', '/livez', '/readyz']) t.deepEqual([who, (await client.raw('GET', path)).text], [who, 'ok']);
});

test.serial('a refusal is worded as in Kubernetes', async (t) => {
  const { strangers } = await known();
  const [, anonymous] = strangers[0]!;

  const { message, details } = JSON.parse((await anonymous.raw('DELETE', aPath({ name: 'one' }))).text) as KubeStatus;

  t.is(
    message,
    'apiexports.apis.kcp.io "one" is forbidden: User "system:anonymous" cannot delete resource "apiexports" in API group "apis.kcp.io" at the cluster scope',
  );
  t.deepEqual(details, { name: 'one', group: 'apis.kcp.io', kind: 'apiexports' });
});

test.serial('without a client CA everybody is anonymous', async (t) => {
  const server = await TestServer.start({ flags: { 'client-ca-file': '' } });
  t.teardown(() => server.close());

  t.is((await server.client().raw('GET', aPath())).status, 403);
});
