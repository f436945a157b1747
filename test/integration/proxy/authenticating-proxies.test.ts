/** Certificates of authenticating proxies, and requests of browser pages, over the wire. */
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { TestAuthority } from '../../support/test-authority.js';
import { until } from '../../support/test-server.js';
import { anInstallation } from '../../support/proxy/a-front-door.js';
import type { Echoed } from '../../support/proxy/echo-backend.js';

async function anAuthority(t: ExecutionContext, name: string): Promise<TestAuthority> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-requestheader-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return new TestAuthority(folder, { name });
}

const saysAlice = {
  'x-remote-user': 'alice',
  'x-remote-group': ['team', 'system:masters'],
  'x-remote-extra-authentication.kcp.io%2fscopes': 'cluster:a',
  'x-remote-uid': '7',
};

for (const http2 of [false, true]) {
  const over = http2 ? 'HTTP/2' : 'HTTP/1.1';

  test(`over ${over}, an authenticating proxy names in headers for whom it asks, and has no rights itself`, async (t) => {
    const requestheader = await anAuthority(t, 'requestheader');
    const settings = { requestheaderCaFile: requestheader.certificateFile, requestheaderNames: ['shard-proxy', 'another'] };
    const { door, amber } = await anInstallation(t, { settings });
    const proxy = requestheader.issue({ user: 'shard-proxy', groups: ['system:masters'] });
    const ask = async (as: typeof proxy, headers: Record<string, string | string[]>, target = '/clusters/root/echo') => {
      const { status, text } = await door.client({ http2, as }).raw('GET', target, { headers });
      return { status, headers: status === 200 && text.startsWith('{') ? (JSON.parse(text) as Echoed).headers : {} };
    };

    const forAlice = await ask(proxy, saysAlice);
    t.is(forAlice.status, 200);
    t.is(forAlice.headers['x-remote-user'], 'alice');
    t.is(forAlice.headers['x-remote-group'], 'system:authenticated, team');
    t.is(forAlice.headers['x-remote-extra-authentication.kcp.io%2fscopes'], 'cluster:a');
    t.deepEqual(
      Object.keys(forAlice.headers).filter((name) => name.startsWith('x-remote-')).length,
      3,
      'no uid, and not the credential of the proxy',
    );
    const forNobody = await ask(proxy, { authorization: 'Bearer token' });
    t.like(forNobody, { status: 200, headers: { authorization: 'Bearer token' } });
    t.false(Object.keys(forNobody.headers).some((name) => name.startsWith('x-remote-')));
    t.is((await ask(proxy, saysAlice, '/metrics')).status, 403, 'the groups of the proxy would allow it');

    const unnamed = requestheader.issue({ user: 'shard', groups: ['system:masters'] });
    const before = amber.asked;
    t.is((await ask(unnamed, saysAlice)).status, 401, 'a name that is not on the list');
    t.is((await ask(unnamed, {}, '/metrics')).status, 401);
    t.is(amber.asked, before);

    const client = door.authority.issue({ user: 'shard-proxy', groups: ['team'] });
    const itself = await ask(client, { ...saysAlice, 'x-remote-user': 'root' });
    t.is(itself.headers['x-remote-user'], 'shard-proxy', 'an ordinary client of the same name cannot speak for others');
    t.is(itself.headers['x-remote-group'], 'system:authenticated, team');
  });
}

test('a connection ends when its CA moves from one purpose to another', async (t) => {
  const requestheader = await anAuthority(t, 'requestheader');
  const former = await anAuthority(t, 'former');
  const folder = await mkdtemp(join(tmpdir(), 'strata-requestheader-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const requestheaderCaFile = join(folder, 'ca.crt');
  await copyFile(former.certificateFile, requestheaderCaFile);
  const { door } = await anInstallation(t, { settings: { requestheaderCaFile }, flags: { 'tls-files-poll': '1s' } });
  const client = door.client({ http2: true, as: former.issue({ user: 'shard-proxy', groups: [] }) });
  const user = async (): Promise<unknown> => {
    const { status, text } = await client.raw('GET', '/clusters/root/echo', { headers: saysAlice });
    return status === 200 ? (JSON.parse(text) as Echoed).headers['x-remote-user'] : status;
  };
  t.is(await user(), 'alice');
  await copyFile(requestheader.certificateFile, requestheaderCaFile);
  await until(async () => (await user().catch(() => 'ended')) === 401);
  t.is(await user(), 401);
  await copyFile(door.authority.certificateFile, requestheaderCaFile);
  const own = door.client({ http2: true });
  await until(async () => {
    const { text } = await own.raw('GET', '/clusters/root/echo', { headers: saysAlice }).catch(() => ({ text: '' }));
    return text !== '' && (JSON.parse(text) as Echoed).headers['x-remote-user'] === 'alice';
  }, 10_000);
});

test('preflights of allowed origins are answered before authentication, and those of other origins get no CORS headers', async (t) => {
  const { door, amber } = await anInstallation(t, { settings: { corsOrigins: [/^https:\/\/example\.com$/] } });
  const preflight = { headers: { origin: 'https://example.com', 'access-control-request-method': 'GET' } };
  const allowed = await door.client({ as: null }).raw('OPTIONS', '/clusters/root/echo', preflight);
  t.is(allowed.status, 204);
  t.like(allowed.headers, {
    'access-control-allow-origin': 'https://example.com',
    'access-control-allow-methods': 'POST, GET, OPTIONS, PUT, DELETE, PATCH',
    'access-control-allow-credentials': 'true',
  });
  t.is(allowed.headers['content-length'], undefined);
  t.is(amber.asked, 0);
  const headers = { origin: 'https://example.com' };
  for (const http2 of [false, true]) {
    const got = await door.client({ http2 }).raw('GET', '/clusters/root/echo', { headers });
    t.is(got.headers['access-control-allow-origin'], 'https://example.com');
    t.is(got.headers['x-from'], 'backend');
    const unknown = await door.client({ http2 }).raw('GET', '/clusters/root:nope/echo', { headers });
    t.is(unknown.status, 403);
    t.is(unknown.headers['access-control-allow-origin'], 'https://example.com');
    t.is((await door.client({ http2 }).raw('GET', '/readyz', { headers })).headers['access-control-allow-origin'], undefined);
    const other = await door.client({ http2 }).raw('GET', '/clusters/root/echo', { headers: { origin: 'https://example.com.evil.org' } });
    t.is(other.status, 200);
    t.is(other.headers['access-control-allow-origin'], undefined);
  }
  const before = amber.asked;
  const refused = await door.client().raw('OPTIONS', '/clusters/root/echo', { headers: { origin: 'https://evil.org' } });
  t.is(refused.headers['access-control-allow-origin'], undefined);
  t.is(amber.asked, before + 1, 'the backend answers it');
});

for (const http2 of [false, true])
  test(`over ${http2 ? 'HTTP/2' : 'HTTP/1.1'}, headers of an authenticating proxy are read as UTF-8 bytes, and no extra key is merged with another`, async (t) => {
    const requestheader = await anAuthority(t, 'requestheader');
    const settings = { requestheaderCaFile: requestheader.certificateFile, requestheaderNames: [], droppedGroups: ['büro'] };
    const { door } = await anInstallation(t, { settings });
    const proxy = requestheader.issue({ user: 'shard-proxy', groups: [] });
    const asBytes = (text: string): string => Buffer.from(text).toString('latin1');
    const headers = {
      'x-remote-user': 'alice',
      'x-remote-group': [asBytes('büro'), asBytes('küche')],
      'x-remote-extra-scopes': 'a',
      'x-remote-extra-%53copes': 'b',
    };
    const { text } = await door.client({ http2, as: proxy }).raw('GET', '/clusters/root/echo', { headers });
    const passed = (JSON.parse(text) as Echoed).headers;
    t.is(passed['x-remote-group'], `${asBytes('küche')}, system:authenticated`);
    t.is(passed['x-remote-extra-scopes'], 'a');
    t.is(passed['x-remote-extra-%53copes'], 'b');
  });
