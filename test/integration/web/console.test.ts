/**
 * The console over the wire: who may see it, what its session may do, and that its page loads
 * nothing from other hosts.
 */
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { join, posix } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { tmpdir } from 'node:os';
import { largeTest } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import type { KubeClient } from '../../support/kube-client.js';
import { TestAuthority } from '../../support/test-authority.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';

const exports = '/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports';
const anExport = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: 'edge' }, spec: {} };
const listed = '/console/objects/shards/*/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports';

test('without a certificate or a session the server shows nothing of the console, and makes no link', async (t) => {
  const server = await aServer(t);
  const nobody = server.client({ as: null });

  for (const path of ['/console', '/console/assets/main.js', '/console/overview', listed]) {
    const { status, text } = await nobody.raw('GET', path);
    t.is(status, 401, path);
    t.regex(text, /strata console/);
  }
  t.is((await nobody.raw('POST', '/console/links')).status, 403);
  t.is((await nobody.raw('GET', '/console/enter?link=guess')).status, 401);
  t.is((await nobody.raw('GET', '/console/enter')).status, 401);
});

test('a certificate that names nobody sees no console either', async (t) => {
  const server = await aServer(t);
  const other = server.client({ as: server.authority.issue({ user: 'somebody', groups: ['people'] }) });

  t.is((await other.raw('GET', '/console')).status, 401);
  t.is((await other.raw('POST', '/console/links')).status, 403);
});

test('a link opens one session, whose cookie scripts cannot read and other sites cannot send', async (t) => {
  const server = await aServer(t);
  const path = await linkOf(server.client());
  const nobody = server.client({ as: null });
  t.is((await nobody.raw('HEAD', path)).status, 200, 'a HEAD does not use it up');
  const entered = await nobody.raw('GET', path);

  t.is(entered.status, 200);
  t.regex(entered.headers['set-cookie']!, /^__Host-strata-[\w-]+=[\w-]{43}; Path=\/; Max-Age=3600; HttpOnly; Secure; SameSite=Strict$/);
  t.regex(entered.text, /<meta http-equiv="refresh" content="0; url=\/console">/);
  t.is((await nobody.raw('GET', path)).status, 401);
});

test('a request for the console from another site redirects itself, so that the browser sends the cookie', async (t) => {
  const server = await aServer(t);
  const nobody = server.client({ as: null });

  const led = await nobody.raw('GET', '/console', { headers: { 'sec-fetch-site': 'cross-site' } });
  t.is(led.status, 401);
  const [, script = ''] = /<script>(.*)<\/script>/.exec(led.text) ?? [];
  t.regex(script, /^location\.replace\('\/console\?led' \+ location\.hash\)$/);
  t.true(led.headers['content-security-policy']!.includes(`'sha256-${createHash('sha256').update(script).digest('base64')}'`));
  t.regex((await nobody.raw('GET', '/console', { headers: { 'sec-fetch-site': 'same-origin' } })).text, /strata console/);
});

test('the log says who asked for a link, who used it, who was not admitted and who read what', async (t) => {
  const server = await aServer(t, { flags: { 'access-log': 'true' } });
  const reader = await aSession(server);
  await reader('GET', listed);
  await server.client({ as: null }).raw('GET', '/console/overview');

  const fieldsOf = (event: string) =>
    server.logged.filter((line) => line.event === event).map(({ fields }) => fields as Record<string, unknown>);
  t.deepEqual(fieldsOf('console.link-made'), [{ user: 'cache-client' }]);
  t.deepEqual(fieldsOf('console.entered'), [{ user: 'cache-client' }]);
  t.deepEqual(fieldsOf('console.refused'), [{ user: 'system:anonymous', path: '/console/overview' }]);
  t.like(
    fieldsOf('request.answered').find(({ path }) => path === listed),
    { user: 'cache-client', verb: 'list', code: 200 },
  );
  t.notRegex(JSON.stringify(server.logged), /link=/);
});

test('a session sees the page, the overview and objects', async (t) => {
  const server = await aServer(t);
  await server.client().create(exports, anExport);
  const reader = await aSession(server);

  t.is((await reader('GET', '/console')).status, 200);
  const overview = JSON.parse((await reader('GET', '/console/overview')).text);
  t.like(overview.types[0], { resource: 'apiexports', objects: 1, shards: 1 });
  t.like(overview.shards[0], { shard: 'amber', objects: 1, state: 'partial' });
  t.deepEqual(Object.keys(overview.activity.perSecond), ['requests', 'written', 'events', 'refused']);
  const { status, text } = await reader('GET', `${listed}?limit=1`);
  t.is(status, 200);
  t.is(JSON.parse(text).items[0].metadata.name, 'edge');
  const one = await reader('GET', `/console/objects${exports.slice('/services/cache'.length)}/edge`, { accept: 'application/yaml' });
  t.regex(one.text, /^kind: APIExport$/m);
});

test('a session may only read, and only below /console', async (t) => {
  const server = await aServer(t);
  await server.client().create(exports, anExport);
  const reader = await aSession(server);

  for (const path of ['/console/overview', `${listed}?limit=1`]) {
    const { headers } = await reader('GET', path);
    t.like(headers, { 'x-content-type-options': 'nosniff', 'cross-origin-resource-policy': 'same-origin' }, path);
  }
  for (const path of ['/services/cache/status', '/metrics', exports]) t.is((await reader('GET', path)).status, 403, path);
  t.is((await reader('POST', '/console/links')).status, 403);
  t.is((await reader('DELETE', '/services/cache/shards/amber')).status, 403);
  t.is((await reader('GET', `${listed}?watch=true`)).status, 405);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
    t.true([403, 404, 405].includes((await reader(method, `${listed}/edge`)).status), method);
  t.is((await server.client().get(`${exports}/edge`)).metadata.name, 'edge');
});

test('a shard’s certificate sees the console, and may make a link', async (t) => {
  const server = await aServer(t);
  const shard = server.client({
    as: server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://shard/amber'] }),
  });

  t.is((await shard.raw('GET', '/console')).status, 200);
  const reader = await aSession(server, shard);
  t.is((await reader('GET', '/console/overview')).status, 200);
});

test('a web page cannot make a link, whoever visits it', async (t) => {
  const server = await aServer(t);

  t.is((await server.client().raw('POST', '/console/links', { headers: { origin: 'https://elsewhere.example' } })).status, 403);
});

test('a link takes no options, and a request with options makes none', async (t) => {
  const server = await aServer(t);
  const master = server.client();

  for (const path of ['/console/links?dryRun=All', '/console/links?x']) t.is((await master.raw('POST', path)).status, 400, path);
  t.is((await master.raw('POST', '/console/links', { body: '{"dryRun":["All"]}' })).status, 400);
  t.is((await master.raw('POST', '/console/links')).status, 201);
});

test('however many viewers ask at once, the cache makes one report', async (t) => {
  const server = await aServer(t);
  const master = server.client();
  await Promise.all(Array.from({ length: 5 }, () => master.raw('GET', '/console/overview')));
  const beganMs = performance.now();
  const answers = await Promise.all(Array.from({ length: 100 }, () => master.raw('GET', '/console/overview')));
  const tookMs = performance.now() - beganMs;

  // Reports would differ in their durations. The cache reuses a report for half a second.
  const looks = new Set(answers.map(({ text }) => text)).size;
  t.true(looks <= 2 + tookMs / 500, `${looks} in ${tookMs.toFixed(0)} ms`);
  await until(async () => JSON.parse((await master.raw('GET', '/console/overview')).text).activity.perSecond.requests.length > 0);
});

test('the page loads nothing from other hosts, and its policy allows what it loads', async (t) => {
  const server = await aServer(t);
  const { headers, text } = await server.client().raw('GET', '/console');

  const [, map = ''] = /<script type="importmap">(.*?)<\/script>/.exec(text) ?? [];
  const policy = headers['content-security-policy']!;
  t.true(policy.startsWith("default-src 'none'; script-src 'self' "));
  t.true(policy.includes(`'sha256-${createHash('sha256').update(map).digest('base64')}'`));
  t.notRegex(policy, /unsafe|http|\*/);
  t.notRegex(text, /https?:|\bon\w+=|style=/);
  t.is(headers['x-content-type-options'], 'nosniff');
  t.is(headers['referrer-policy'], 'no-referrer');
});

test('every module that the page imports, directly or not, is served', async (t) => {
  const server = await aServer(t);
  const master = server.client();
  const { text } = await master.raw('GET', '/console');
  const { imports } = JSON.parse(/<script type="importmap">(.*?)<\/script>/.exec(text)![1]!) as { imports: Record<string, string> };
  const waiting = [...text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path!);
  const seen = new Set<string>();
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    const { status, headers, text: code } = await master.raw('GET', path);
    t.is(status, 200, path);
    if (!path.endsWith('.js')) continue;
    t.is(headers['content-type'], 'text/javascript; charset=utf-8', path);
    for (const [, specifier] of code.matchAll(/(?:^|;)(?:import|export)\b[\w\s{},*$]*?(?:from)?\s*["']([^"'\n]+)["']/gm)) {
      const target = specifier!.startsWith('.') ? posix.join(posix.dirname(path), specifier!) : imports[specifier!];
      t.truthy(target, `${path} imports ${specifier}`);
      waiting.push(target!);
    }
  }
  t.true(seen.size >= 12, [...seen].join(' '));
});

test('a file that the browser already has is not sent again, and unknown files are not served', async (t) => {
  const server = await aServer(t);
  const master = server.client();
  const { headers } = await master.raw('GET', '/console/assets/main.js');

  for (const etag of [headers['etag']!, `W/${headers['etag']}`, `"other", ${headers['etag']}`, '*'])
    t.is((await master.raw('GET', '/console/assets/main.js', { headers: { 'if-none-match': etag } })).status, 304, etag);
  for (const path of ['main.ts', 'tsconfig.json', '../sessions.js', '%2e%2e/sessions.js', 'lit-html/package.json', ''])
    t.not((await master.raw('GET', `/console/assets/${path}`)).status, 200, path);
});

test('sessions end when the client authorities change', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-console-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const [authority, other] = [new TestAuthority(folder), new TestAuthority(await mkdtemp(join(folder, 'other')))];
  const file = join(folder, 'client-ca.crt');
  const [own, added] = [await readFile(authority.certificateFile, 'utf8'), await readFile(other.certificateFile, 'utf8')];
  await writeFile(file, own);
  const server = await aServer(t, { authority, flags: { 'client-ca-file': file, 'tls-files-poll': '300ms' } });
  const reader = await aSession(server);
  t.is((await reader('GET', '/console/overview')).status, 200);

  await writeFile(file, own + added);
  await until(async () => (await reader('GET', '/console/overview')).status === 401);
  t.pass();
});

largeTest('connections of a withdrawn authority keep no session, however many ask for one', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-console-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const [authority, other] = [new TestAuthority(folder), new TestAuthority(await mkdtemp(join(folder, 'other')))];
  const file = join(folder, 'client-ca.crt');
  const [own, withdrawn] = [await readFile(authority.certificateFile, 'utf8'), await readFile(other.certificateFile, 'utf8')];
  await writeFile(file, own + withdrawn);
  const server = await aServer(t, { authority, flags: { 'client-ca-file': file, 'tls-files-poll': '300ms' } });
  const as = other.issue({ user: 'gone', groups: ['system:masters'] });
  const agent = new Agent({ keepAlive: true, maxSockets: 300, cert: as.certificate, key: as.key, rejectUnauthorized: false });
  t.teardown(() => agent.destroy());
  const links: string[] = [];
  let isOver = false;
  const ask = async (): Promise<void> => {
    while (!isOver) {
      const text = await answerOf(server, agent).catch(() => '');
      if (text.includes('"path"')) links.push((JSON.parse(text) as { path: string }).path);
      else await sleep(20);
    }
  };
  const asking = Array.from({ length: 300 }, ask);
  t.teardown(() => (isOver = true));
  await until(() => links.length > 300);
  await writeFile(file, own);
  await until(() => server.logged.some(({ event }) => event === 'client-ca.reloaded'));
  await sleep(500);
  isOver = true;
  await Promise.all(asking);

  const nobody = server.client({ as: null });
  let entered = 0;
  for (const link of links.slice(-200)) if ((await nobody.raw('GET', link)).status === 200) entered += 1;
  t.is(entered, 0);
});

function answerOf({ port }: TestServer, agent: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, agent, method: 'POST', path: '/console/links' }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () => resolve(text));
      response.on('error', reject);
    });
    asked.on('error', reject);
    asked.end();
  });
}

test('refusals show among the last lines, without anything that the client sent', async (t) => {
  const server = await aServer(t);
  const master = server.client();
  const headers = { 'content-type': 'application/json' };
  await master.create(exports, anExport);
  t.is((await master.raw('POST', exports, { body: anExport, headers })).status, 409);
  const labelled = { ...anExport, metadata: { name: 'two', labels: { one: 'hunter2 secret!' } } };
  t.is((await master.raw('POST', exports, { body: labelled, headers })).status, 422);
  t.is((await master.raw('POST', exports, { body: '{"hunter2": tru', headers })).status, 400);
  await server.client({ as: null }).raw('GET', exports);

  const { lines } = JSON.parse((await master.raw('GET', '/console/overview')).text) as {
    lines: { level: string; event: string; fields: string }[];
  };
  const refused = lines.filter(({ event }) => event === 'request.refused');
  t.like(lines[0], { level: 'warn', event: 'request.forbidden' });
  t.regex(refused[0]!.fields, /verb=create .*reason=BadRequest/);
  t.regex(refused[1]!.fields, /verb=create .*reason=Invalid fields=\["metadata.labels/);
  t.regex(refused[2]!.fields, /verb=create .*reason=AlreadyExists message=/);
  t.notRegex(JSON.stringify([lines, server.logged]), /hunter2/);
});

test('a server whose console is off serves none', async (t) => {
  const server = await aServer(t, { flags: { console: 'false' } });

  t.true([400, 404].includes((await server.client().raw('GET', '/console')).status));
  t.is((await server.client({ as: null }).raw('GET', '/console')).status, 403);
});

async function linkOf(client: KubeClient): Promise<string> {
  const { status, text } = await client.raw('POST', '/console/links');
  if (status !== 201) throw new Error(`no link: ${status} ${text}`);
  const { path, expiresInMs } = JSON.parse(text) as { path: string; expiresInMs: number };
  if (expiresInMs !== 60_000) throw new Error(`good for ${expiresInMs} ms`);
  return path;
}

type Ask = (method: string, path: string, headers?: Readonly<Record<string, string>>) => ReturnType<KubeClient['raw']>;

/** A function that sends requests without a certificate, with a session's cookie. */
async function aSession(server: TestServer, maker = server.client()): Promise<Ask> {
  const browser = server.client({ as: null });
  const { headers } = await browser.raw('GET', await linkOf(maker));
  const [cookie = ''] = headers['set-cookie']!.split(';');
  return (method, path, more = {}) => browser.raw(method, path, { headers: { ...more, cookie } });
}
