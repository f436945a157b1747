import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { systemClock } from '../../../src/clock.js';
import { CacheError } from '../../../src/domain/errors.js';
import { KubeClient } from '../../../src/kube/kube-client.js';
import { loadKubeconfig, type KubeconfigAccess } from '../../../src/shard/kubeconfig/kubeconfig.js';
import { ShardStandIn } from '../../support/shard-stand-in.js';
import { TestAuthority, type Certificate } from '../../support/test-authority.js';
import { until } from '../../support/test-server.js';
import { aFolder, replace } from './a-kubeconfig.js';
import { recording, type Logged } from './an-agent.js';

type Parts = Readonly<{ cluster?: Readonly<Record<string, unknown>>; user?: Readonly<Record<string, unknown>>; server?: string }>;

const never = new AbortController().signal;

async function load(path: string, { context, allowInsecure = false, logged = [] }: LoadOptions = {}): Promise<KubeconfigAccess> {
  return loadKubeconfig({ path, context, allowInsecure }, { clock: systemClock, log: recording(logged), environment: {} });
}
type LoadOptions = { context?: string; allowInsecure?: boolean; logged?: Logged[] };

async function loaded(
  folder: string,
  { cluster = {}, user = {}, server = 'https://shard:6443' }: Parts,
  options: LoadOptions = {},
): Promise<KubeconfigAccess> {
  const path = join(folder, 'kubeconfig');
  const config = {
    clusters: [{ name: 'c', cluster: { server, ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [
      { name: 'one', context: { cluster: 'c', user: 'u' } },
      { name: 'lost', context: { cluster: 'nowhere', user: 'u' } },
    ],
    'current-context': 'one',
  };
  await writeFile(path, JSON.stringify(config));
  return load(path, options);
}

/**
 * A stand-in that accepts certificates, an authority that issues them, and a kubeconfig that names
 * `agent.crt` and `agent.key`.
 */
async function aPlace(t: ExecutionContext) {
  const folder = await aFolder(t);
  await mkdir(join(folder, 'ca'));
  const [shard, authority] = await Promise.all([ShardStandIn.start(), new TestAuthority(join(folder, 'ca'))]);
  t.teardown(() => shard.close());
  shard.accepts = ({ user }) => user !== '';
  const issue = (user: string): Certificate => authority.issue({ user, groups: [] });
  const install = async ({ certificate, key }: Certificate): Promise<void> => {
    await replace(join(folder, 'agent.key'), key);
    await replace(join(folder, 'agent.crt'), certificate);
  };
  await install(issue('first'));
  const path = join(folder, 'kubeconfig');
  await writeFile(path, shard.kubeconfigText({ 'client-certificate': 'agent.crt', 'client-key': 'agent.key' }));
  const logged: Logged[] = [];
  const access = await load(path, { logged });
  const client = new KubeClient({ access, clock: systemClock, userAgent: 'test' });
  t.teardown(() => client.close());
  return { folder, path, shard, authority, issue, install, logged, access, client };
}

const identitiesPath = '/clusters/system:shard/api/v1/namespaces/default/configmaps/apiexport-identity-cache';
const watchPath = '/clusters/*/apis/core.kcp.io/v1alpha1/shards:identity-of-shards-core-kcp-io?watch=true&sendInitialEvents=true';

/** Sends a request and reads the whole answer; returns the user that the shard saw. */
async function ask({ client, shard }: { client: KubeClient; shard: ShardStandIn }): Promise<string> {
  for await (const _ of await client.open({ path: identitiesPath, answerMsMax: 5_000, silenceMsMax: 5_000, signal: never }));
  return shard.callers.at(-1)?.user ?? '';
}

async function failure(place: { client: KubeClient; shard: ShardStandIn }): Promise<string> {
  return ask(place).then(
    () => '',
    (error: unknown) => String(error),
  );
}

test('the agent reaches a shard with the credentials of its kubeconfig', async (t) => {
  const shard = await ShardStandIn.start();
  t.teardown(() => shard.close());

  const { certificates, caSource, ...access } = await load(shard.kubeconfig);

  const { credentials, ...rest } = access;
  const { credentials: expected, ...restExpected } = shard.access;
  t.deepEqual(rest, { ...restExpected, source: shard.kubeconfig });
  t.deepEqual(await credentials(never), await expected(never));
  t.deepEqual(certificates(), []);
  t.is(caSource?.(), `${shard.kubeconfig}: the certificate-authority-data`);
});

test("certificates come from the file or from files beside it; the logical cluster in the server's URL is dropped", async (t) => {
  const folder = await aFolder(t);
  const authority = new TestAuthority(folder);
  const { certificate, key, keyFile } = authority.issue({ user: 'agent', groups: [] });
  const access = await loaded(folder, {
    server: 'https://shard:6443/kcp/clusters/root:org',
    cluster: { 'certificate-authority': 'ca.crt', 'tls-server-name': 'amber' },
    user: { 'client-certificate-data': Buffer.from(certificate).toString('base64'), 'client-key': keyFile.replace(folder, '.') },
  });

  t.is(access.server, 'https://shard:6443/kcp');
  t.is(access.serverName, 'amber');
  t.deepEqual(await access.credentials(never), { ca: await readFile(join(folder, 'ca.crt'), 'utf8'), certificate, key });
});

test('a token file is read for every request, and a file without a token changes nothing', async (t) => {
  const folder = await aFolder(t);
  const file = join(folder, 'token');
  const logged: Logged[] = [];
  await writeFile(file, 'first\n');
  const access = await loaded(folder, { user: { tokenFile: 'token', token: 'other' } }, { logged });
  const authorization = async (): Promise<unknown> => (await access.credentials(never)).authorization;

  t.is(await authorization(), 'Bearer first');
  await writeFile(file, 'second\n');
  t.is(await authorization(), 'Bearer second');
  for (const text of ['', 'not\na token']) {
    await writeFile(file, text);
    t.is(await authorization(), 'Bearer second');
  }
  await rm(file);
  t.is(await authorization(), 'Bearer second');
  await writeFile(file, 'third');
  t.is(await authorization(), 'Bearer third');
  t.deepEqual(
    logged.map(({ event }) => event),
    ['kubeconfig.reloaded', ...Array<string>(3).fill('kubeconfig.reload-failed'), 'kubeconfig.reloaded'],
  );
});

test('members that YAML merge keys bring into a kubeconfig are used, or refused if not supported', async (t) => {
  const folder = await aFolder(t);
  const path = join(folder, 'kubeconfig');
  const text = (user: string, cluster = '{ server: "https://shard:6443" }'): string => `
anchors: { viewer: &viewer { as-groups: [viewers] }, away: &away { proxy-url: "http://proxy", server: "https://other:6443" } }
clusters: [{ name: c, cluster: ${cluster} }]
users: [{ name: u, user: ${user} }]
contexts: [{ name: one, context: { cluster: c, user: u } }]
current-context: one
`;
  for (const user of ['{ <<: { as: nobody }, token: t }', '{ <<: *viewer, token: t }', '{ <<: [*viewer, { tokenFile: f }], token: t }']) {
    await writeFile(path, text(user));
    await t.throwsAsync(load(path), { message: /needs more than a certificate/ }, user);
  }
  for (const behind of ['{ token: t, <<: { token: merged } }', '{ token: t, <<: [*viewer] }']) {
    await writeFile(path, text(behind));
    await t.throwsAsync(load(path), { message: /line 4 is not YAML, or is ambiguous/ }, 'kubectl accepts merged members');
  }
  await writeFile(path, text('{ token: t }', '{ <<: *away }'));
  await t.throwsAsync(load(path), { message: /behind a proxy/ });
  await writeFile(
    path,
    text('{ <<: { token: merged } }', '{ <<: { server: "https://other:6443", tls-server-name: amber }, server: "https://shard:6443" }'),
  );
  const access = await load(path);
  t.deepEqual([access.server, access.serverName], ['https://shard:6443', 'amber']);
  t.is((await access.credentials(never)).authorization, 'Bearer merged');
});

test('an unsupported kubeconfig is refused when it is read, with the reason', async (t) => {
  const folder = await aFolder(t);
  const junk = Buffer.from('junk').toString('base64');
  const cases: [Parts, RegExp][] = [
    [{ cluster: { 'insecure-skip-tls-verify': true } }, /insecure-skip-tls-verify.*--allow-insecure-kubeconfig/],
    [{ cluster: { 'proxy-url': 'http://proxy' } }, /behind a proxy/],
    [{ cluster: { 'certificate-authority-data': junk } }, /certificate-authority-data holds no PEM certificate/],
    [{ user: { username: 'a', password: 'b' } }, /needs more than a certificate/],
    [{ user: { as: 'someone' } }, /needs more than a certificate/],
    [{ user: { 'as-groups': ['system:masters'] } }, /needs more than a certificate/],
    [{ user: { 'as-uid': '1' } }, /needs more than a certificate/],
    [{ user: { 'as-user-extra': { a: ['b'] } } }, /needs more than a certificate/],
    [{ user: { token: 12 } }, /token of the user u is not a string/],
    [{ user: { token: ['a'] } }, /token of the user u is not a string/],
    [{ user: { tokenFile: 7 } }, /tokenFile of the user u is not a string/],
    [{ user: { 'client-key-data': {} } }, /client-key-data of the user u is not a string/],
    [{ cluster: { 'tls-server-name': 7 } }, /tls-server-name of the cluster c is not a string/],
    [{ cluster: { 'insecure-skip-tls-verify': 'true' } }, /insecure-skip-tls-verify of the cluster c is not a boolean/],
    [{ user: { 'auth-provider': { name: 'gcp' } } }, /needs more than a certificate/],
    [{ user: { 'client-certificate-data': junk } }, /only one of a certificate and its key/],
    [{ user: { 'client-certificate-data': junk, 'client-key-data': junk } }, /client-certificate-data holds no PEM certificate/],
    [{ cluster: { 'certificate-authority-data': junk, 'certificate-authority': 'ca.crt' } }, /both certificate-authority and/],
    [
      { user: { 'client-certificate-data': junk, 'client-certificate': 'a.crt', 'client-key-data': junk } },
      /both client-certificate and client-certificate-data/,
    ],
    [{ user: { token: 'two\nlines' } }, /the token has characters that no HTTP header can carry/],
    [{ server: 'http://shard:6443' }, /is not an https URL/],
    [{ server: 'shard' }, /is not an https URL/],
  ];
  for (const [parts, message] of cases) await t.throwsAsync(loaded(folder, parts), { message, instanceOf: CacheError });

  const path = join(folder, 'kubeconfig');
  await t.throwsAsync(load(path, { context: 'two' }), { message: /no context "two", but one, lost/ });
  for (const [kind, entry, message] of [
    ['users', { name: 'u', user: {} }, /two users of the name "u"/],
    ['clusters', { name: 'c', cluster: { server: 'https://shard:6443' } }, /two clusters of the name "c"/],
    ['contexts', { name: 'one', context: { cluster: 'c', user: 'u' } }, /two contexts of the name "one"/],
    ['users', { name: 'text', user: 'token' }, /a user that is not an object/],
    ['users', { name: 'list', user: ['token'] }, /a user that is not an object/],
  ] as const) {
    const config = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown[]>;
    const changed = join(folder, 'changed');
    await writeFile(changed, JSON.stringify({ ...config, [kind]: [...config[kind]!, entry] }));
    await t.throwsAsync(load(changed), { message, instanceOf: CacheError });
  }
  await t.throwsAsync(load(path, { context: 'lost' }), { message: /names the cluster nowhere/ });
  await writeFile(path, 'contexts: [{name: x}]');
  await t.throwsAsync(load(path, { context: 'x' }), { message: /not a kubeconfig: contexts\[0\]\.context is missing/ });
  for (const [name, value] of [
    ['kind', 'Secret'],
    ['apiVersion', 'v2'],
  ] as const) {
    await writeFile(path, `${name}: ${value}\ncontexts: []\n`);
    await t.throwsAsync(load(path, { context: 'x' }), { message: new RegExp(`not a kubeconfig: its ${name} is not `) });
  }
  await writeFile(path, 'a: [');
  await t.throwsAsync(load(path, { context: 'x' }), { message: /not a kubeconfig: line 1 is not YAML/ });
  await writeFile(path, 'users: [{name: u, user: {token: *hunter2}}]');
  const { message } = await t.throwsAsync(load(path, { context: 'x' }));
  t.regex(message, /not a kubeconfig: .* is not YAML/);
  t.false(message.includes('hunter2'));
});

test('a certificate goes unverified only when the file and the operator both allow that', async (t) => {
  const access = await loaded(await aFolder(t), { cluster: { 'insecure-skip-tls-verify': true } }, { allowInsecure: true });

  t.true(access.insecure);
});

test('the next request shows a rotated certificate to the shard, and a watch continues with the former one', async (t) => {
  const place = await aPlace(t);
  const { shard, client, issue, install } = place;
  t.is(await ask(place), 'first');
  const over = new AbortController();
  const watch = await client.open({ path: watchPath, answerMsMax: 5_000, silenceMsMax: 5_000, signal: over.signal });
  await watch.next();
  t.is(await ask(place), 'first');
  t.is(shard.openConnections, 1);

  await install(issue('second'));

  t.is(await ask(place), 'second');
  t.is(await ask(place), 'second');
  await until(() => shard.openConnections === 2);
  shard.bookmark();
  t.false((await watch.next()).done);
  over.abort();
});

test('a half-written certificate leaves the former one in use, with one warning', async (t) => {
  const place = await aPlace(t);
  const { folder, logged, issue, install } = place;
  const second = issue('second');

  await replace(join(folder, 'agent.key'), second.key);
  t.is(await ask(place), 'first');
  t.is(await ask(place), 'first');
  await install(second);
  t.is(await ask(place), 'second');

  t.deepEqual(
    logged.map(({ level, event }) => `${level} ${event}`),
    ['warn kubeconfig.reload-failed', 'info kubeconfig.reloaded'],
  );
  t.regex(String(logged[0]?.fields['error']), /agent\.key is not the key of the certificate in .*agent\.crt/);
});

test('a shard with a certificate of another authority is trusted once the CA file contains that authority', async (t) => {
  const place = await aPlace(t);
  const { folder, shard } = place;
  const caFile = join(folder, 'shard-ca.crt');
  await writeFile(caFile, (await shard.access.credentials(never)).ca ?? '');
  const user = { 'client-certificate': 'agent.crt', 'client-key': 'agent.key' };
  await writeFile(place.path, shard.kubeconfigText(user, { 'certificate-authority-data': '', 'certificate-authority': 'shard-ca.crt' }));
  t.is(await ask(place), 'first');

  const other = await ShardStandIn.start();
  t.teardown(() => other.close());
  shard.present(other.certificate);
  shard.cut();
  // The client may notice only later that its connection is gone.
  await until(async () => /is not one that a CA in .* signed/.test(await failure(place)));
  await writeFile(caFile, other.certificate.cert.slice(0, -60));
  t.regex(await failure(place), /is not one that a CA in .* signed/);
  await writeFile(caFile, other.certificate.cert);

  t.is(await ask(place), 'first');
});

test('a kubeconfig that is rewritten with another certificate is read again', async (t) => {
  const place = await aPlace(t);
  const { path, shard, issue, logged } = place;
  const inline = async (user: string): Promise<string> => {
    const { certificate, key } = issue(user);
    const data = (text: string): string => Buffer.from(text).toString('base64');
    return shard.kubeconfigText({ 'client-certificate-data': data(certificate), 'client-key-data': data(key) });
  };
  t.is(await ask(place), 'first');
  for (const user of ['second', 'third']) {
    await replace(path, await inline(user));
    t.is(await ask(place), user);
  }

  const whole = await inline('fourth');
  for (const text of [whole.slice(0, -200), whole.replace(shard.url, 'https://elsewhere:6443'), '']) {
    await replace(path, text);
    t.is(await ask(place), 'third');
    t.is(await ask(place), 'third');
  }
  await replace(path, whole);
  t.is(await ask(place), 'fourth');

  const failures = logged.filter(({ event }) => event === 'kubeconfig.reload-failed').map(({ fields }) => fields['error']);
  t.is(failures.length, 3);
  t.regex(String(failures[0]), /not a kubeconfig: line \d+ is not YAML/);
  t.regex(String(failures[1]), /the context stand-in leads to another server now/);
  t.false(inspect(failures, { depth: 9 }).includes('LS0t'));
});

test('the context that was current at the start stays in use, whatever becomes current', async (t) => {
  const place = await aPlace(t);
  const text = await readFile(place.path, 'utf8');

  await replace(place.path, text.replace('"current-context":"stand-in"', '"current-context":"other"'));
  t.is(await ask(place), 'first');

  t.deepEqual(
    place.logged.map(({ event }) => event),
    ['kubeconfig.reloaded'],
  );
});

test('the agent reports the certificate that it shows to the shard, so that it can warn before the certificate expires', async (t) => {
  const place = await aPlace(t);
  const present = (): readonly string[] => place.access.certificates().map(({ use, file, subject }) => [use, file, subject].join(' '));

  t.deepEqual(present(), [`shard ${join(place.folder, 'agent.crt')} CN=first`]);
  await place.install(place.issue('second'));
  await ask(place);

  t.deepEqual(present(), [`shard ${join(place.folder, 'agent.crt')} CN=second`]);
});
