import { connect } from 'node:tls';
import { test } from '../../support/test.js';
import { systemClock } from '../../../src/clock.js';
import { RawPusher } from '../../support/raw-pusher.js';
import { aServer } from '../../support/test-server.js';

const exports = '/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports';
const anExport = { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name: 'edge' }, spec: {} };

test('a reader sees objects, status, metrics and the console', async (t) => {
  const server = await aServer(t);
  await server.client().create(exports, anExport);
  const reader = server.client({
    as: server.authority.issue({ user: 'prometheus', groups: ['strata'], uris: ['strata://reader/prometheus'] }),
  });

  t.is((await reader.get(`${exports}/edge`)).metadata.name, 'edge');
  for (const path of ['/metrics', '/services/cache/status', '/console', '/console/overview'])
    t.is((await reader.raw('GET', path)).status, 200, path);
  t.is(await server.metric('strata_build_info'), 1);
});

test('a reader cannot write, remove or push anything', async (t) => {
  const server = await aServer(t);
  await server.client().create(exports, anExport);
  const as = server.authority.issue({ user: 'amber', groups: ['strata'], uris: ['strata://reader/amber'] });
  const reader = server.client({ as });

  t.is((await reader.raw('POST', exports, { body: anExport })).status, 403);
  t.is((await reader.raw('DELETE', `${exports}/edge`)).status, 403);
  t.is((await reader.raw('DELETE', '/services/cache/shards/amber')).status, 403);
  await t.throwsAsync(RawPusher.connect(server, as), { message: /cannot connect to/ });
  t.is((await server.client().get(`${exports}/edge`)).metadata.name, 'edge');
});

test('without the group, or with two URIs, a reader’s URI grants nothing', async (t) => {
  const server = await aServer(t);
  for (const { groups, uris } of [
    { groups: ['people'], uris: ['strata://reader/one'] },
    { groups: ['strata'], uris: ['strata://reader/one', 'strata://reader/two'] },
    { groups: ['strata'], uris: ['strata://readers/one'] },
    { groups: ['strata'], uris: ['strata://reader/One!'] },
  ]) {
    const client = server.client({ as: server.authority.issue({ user: 'one', groups, uris }) });
    t.is((await client.raw('GET', '/metrics')).status, 403, JSON.stringify(uris));
  }
});

test('the access log has a line for each request, without its query', async (t) => {
  const server = await aServer(t, { flags: { 'access-log': 'true' } });
  await server.client().raw('GET', `${exports}?labelSelector=secret%3Dvalue`);
  await server.client({ as: null }).raw('GET', exports);

  const lines = server.logged.filter(({ event }) => event === 'request.answered').map(({ fields }) => fields as Record<string, unknown>);
  const [ok, refused] = lines.filter(({ path }) => path === exports);
  t.like(ok, { user: 'cache-client', verb: 'list', code: 200 });
  t.like(refused, { user: 'system:anonymous', verb: 'list', code: 403 });
  t.notRegex(JSON.stringify(lines), /secret/);
});

test('connections are counted by kind of caller and by protocol', async (t) => {
  const server = await aServer(t);
  await server.client({ http2: true }).raw('GET', '/metrics');
  const { text } = await server.client({ http2: true }).raw('GET', '/metrics');

  t.regex(text, /^strata_connections_open\{caller="masters",protocol="HTTP\/2"\} [12]$/m);
  t.regex(text, /^strata_connections_open\{caller="reader",protocol="websocket"\} 0$/m);
  t.regex(text, /^strata_store_file_bytes\{file="database"\} [1-9]\d+$/m);
  t.regex(text, /^strata_store_file_bytes\{file="log"\} \d+$/m);
});

test('strangers do not fill the access log, and its paths have a maximum length', async (t) => {
  // The clock stands still, so the interval that bounds the lines does not end, however slow the
  // machine is.
  const server = await aServer(t, { flags: { 'access-log': 'true' }, clock: { ...systemClock, now: () => 0 } });
  const stranger = server.client({ as: null, http2: false });
  for (let i = 0; i < 300; i++) await stranger.raw('GET', `/${'x'.repeat(4_000)}`);

  const lines = server.logged.filter(({ event }) => event === 'request.answered').map(({ fields }) => fields as { path: string });
  t.true(lines.length <= 200, `${lines.length}`);
  t.true(lines.every(({ path }) => path.length <= 256));
});

test('a server with HTTP/2 turned off does not offer it', async (t) => {
  const server = await aServer(t, { flags: { http2: 'false' } });
  const protocolOf = (offered: readonly string[]) =>
    new Promise<string>((resolve) => {
      const socket = connect({ port: server.port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: [...offered] }, () => {
        resolve(String(socket.alpnProtocol));
        socket.destroy();
      });
      socket.once('error', () => resolve('refused'));
    });

  t.is(await protocolOf(['h2', 'http/1.1']), 'http/1.1');
  t.is(await protocolOf(['h2']), 'refused');
  t.is(await protocolOf([]), 'false');
  t.is((await server.client({ http2: false }).raw('GET', '/readyz')).status, 200);
});
