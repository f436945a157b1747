/**
 * Replaces the file of client authorities while clients are connected, over every protocol that the
 * server speaks.
 */
import { once } from 'node:events';
import { mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { connect as connectTcp, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { OpensslAuthority } from '../../support/certificates/openssl-authority.js';
import { TestAuthority, type Certificate } from '../../support/test-authority.js';
import { RawPusher } from '../../support/raw-pusher.js';
import { aServer, until, type TestServer, type TestServerOptions } from '../../support/test-server.js';

const pollMs = 300;
const exports = '/services/cache/shards/*/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports';

type Rotation = Readonly<{
  server: TestServer;
  old: Certificate;
  next: Certificate;
  /** Replaces the file by swapping a symlink, as Kubernetes replaces a secret. */
  rotateTo: (...which: readonly ('old' | 'next' | 'broken')[]) => Promise<void>;
}>;

async function aRotation(t: ExecutionContext, options: TestServerOptions = {}): Promise<Rotation> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-rotation-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const authorityIn = async (name: string): Promise<TestAuthority> =>
    new TestAuthority(await mkdtemp(join(folder, name)), { name: 'strata-test-authority' });
  const [before, after] = [await authorityIn('old'), await authorityIn('next')];
  const pems = { old: await readFile(before.certificateFile, 'utf8'), next: await readFile(after.certificateFile, 'utf8'), broken: 'junk' };
  const file = join(folder, 'client-ca.crt');
  let version = 0;
  const rotateTo: Rotation['rotateTo'] = async (...which) => {
    version += 1;
    await writeFile(join(folder, `v${version}`), which.map((name) => pems[name]).join(''));
    await symlink(`v${version}`, join(folder, 'swapped'));
    await rename(join(folder, 'swapped'), file);
  };
  await rotateTo('old');
  const flags = { 'client-ca-file': file, 'tls-files-poll': `${pollMs}ms`, ...options.flags };
  const server = await aServer(t, { ...options, authority: before, flags });
  const master = { user: 'someone', groups: ['system:masters'] };
  return { server, old: before.issue(master), next: after.issue(master), rotateTo };
}

function logged(server: TestServer, event: string): Promise<void> {
  return until(() => server.logged.some((line) => line.event === event));
}

for (const http2 of [false, true]) {
  const protocol = http2 ? 'HTTP/2' : 'HTTP/1.1';

  test(`a watch ends at the first poll after its certificate’s authority is removed, and the new authority’s clients are served: ${protocol}`, async (t) => {
    const { server, old, next, rotateTo } = await aRotation(t);
    const [ofOld, ofNext] = [server.client({ as: old, http2 }), server.client({ as: next, http2 })];
    t.is((await ofNext.raw('GET', exports)).status, 403);
    const bookmarks = { allowWatchBookmarks: 'true', sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' };
    const watch = ofOld.watch(exports, { query: bookmarks });
    t.is((await watch.next()).value?.type, 'BOOKMARK');

    const rotatedMs = performance.now();
    await rotateTo('next');
    const end = await watch.next().then(
      ({ done }) => done,
      () => true,
    );

    t.true(end);
    // The watch would otherwise last half an hour. Five seconds are allowed, because the machine
    // runs other tests.
    t.true(performance.now() - rotatedMs < pollMs + 5_000, `after ${performance.now() - rotatedMs} ms`);
    t.is((await ofOld.raw('GET', exports)).status, 403);
    // The old connection was anonymous and has ended too; a new connection is authenticated again.
    t.is((await ofNext.raw('GET', exports)).status, 200);
    await until(async () => {
      const metrics = await ofNext.raw('GET', '/metrics');
      return /^strata_watches_open 0$/m.test(metrics.text);
    });
  });

  test(`while both authorities are in the file both are trusted, and watches of either continue: ${protocol}`, async (t) => {
    const { server, old, next, rotateTo } = await aRotation(t);
    const ofOld = server.client({ as: old, http2 });
    const bookmarks = { allowWatchBookmarks: 'true', sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' };
    const watchOld = ofOld.watch(exports, { query: bookmarks });
    await watchOld.next();

    await rotateTo('old', 'next');
    await logged(server, 'client-ca.reloaded');
    const ofNext = server.client({ as: next, http2 });
    const watchNext = ofNext.watch(exports, { query: bookmarks });
    t.is((await watchNext.next()).value?.type, 'BOOKMARK');
    await ofNext.create('/services/cache/shards/amber/clusters/acme/apis/apis.kcp.io/v1alpha2/apiexports', {
      apiVersion: 'apis.kcp.io/v1alpha2',
      kind: 'APIExport',
      metadata: { name: 'widgets' },
    });

    t.is((await watchOld.next()).value?.object.metadata.name, 'widgets');
    t.is((await watchNext.next()).value?.object.metadata.name, 'widgets');
  });
}

test('a pusher whose authority is removed is disconnected, and cannot reconnect', async (t) => {
  const { server, old, rotateTo } = await aRotation(t);
  const pusher = await RawPusher.open(server, { as: old });

  await rotateTo('next');

  await t.throwsAsync(pusher.next());
  await t.throwsAsync(RawPusher.connect(server, old), { message: /system:anonymous/ });
});

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  test(`a session that began under another authority is not resumed: ${version}`, async (t) => {
    const { server, old, rotateTo } = await aRotation(t);
    const options = {
      port: server.port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      maxVersion: version,
      cert: old.certificate,
      key: old.key,
    };
    const opened = async (session?: Buffer): Promise<TLSSocket> => {
      const socket = connect({ ...options, ...(session === undefined ? {} : { session }) });
      socket.on('error', () => {});
      t.teardown(() => socket.destroy());
      await once(socket, 'secureConnect');
      return socket;
    };
    const ask = async (socket: TLSSocket): Promise<string> => {
      socket.write(`GET ${exports} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
      const [answer] = (await once(socket, 'data')) as [Buffer];
      return answer.toString().slice(0, 'HTTP/1.1 200'.length);
    };
    const first = await opened();
    const ticket = version === 'TLSv1.2' ? Promise.resolve([first.getSession()]) : once(first, 'session');
    t.is(await ask(first), 'HTTP/1.1 200');
    const [session] = (await ticket) as [Buffer];
    const again = await opened(session);
    t.true(again.isSessionReused(), 'without the change the session would be resumed');

    await rotateTo('next');
    await logged(server, 'client-ca.reloaded');
    const resumed = await opened(session);

    t.false(resumed.isSessionReused());
    t.is(await ask(resumed), 'HTTP/1.1 403');
  });
}

test('a handshake in progress while the authorities change is not trusted', async (t) => {
  const { server, old, rotateTo } = await aRotation(t);
  let release = (): void => {};
  // Passes on the first message of a client, and delays its certificate until the test releases it.
  const proxy = createServer((client) => {
    const upstream = connectTcp(server.port, '127.0.0.1');
    const held: Buffer[] = [];
    let isFirst = true;
    let isReleased = false;
    client.on('data', (bytes: Buffer) => {
      if (isFirst || isReleased) upstream.write(bytes);
      else held.push(bytes);
      isFirst = false;
    });
    release = () => {
      isReleased = true;
      for (const bytes of held) upstream.write(bytes);
    };
    upstream.pipe(client);
    // A pipe passes on an end, but not a reset.
    upstream.on('close', () => client.destroySoon());
    for (const socket of [client, upstream]) socket.on('error', () => {});
    t.teardown(() => (client.destroy(), upstream.destroy()));
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.teardown(() => proxy.close());
  const { port } = proxy.address() as AddressInfo;
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, cert: old.certificate, key: old.key });
  socket.on('error', () => {});
  const closed = once(socket, 'close');
  socket.write(`GET ${exports} HTTP/1.1\r\nhost: x\r\n\r\n`);
  let answered = '';
  socket.on('data', (bytes: Buffer) => (answered += bytes.toString()));
  await once(socket, 'secureConnect');

  await rotateTo('next');
  await logged(server, 'client-ca.reloaded');
  release();

  await closed;
  t.is(answered, '');
});

test('a client with an intermediate is served before and after a change, even when it resumes its session', async (t) => {
  const { server, rotateTo } = await aRotation(t);
  const folder = await mkdtemp(join(tmpdir(), 'strata-below-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const below = await new OpensslAuthority(folder, server.authority).intermediate(folder, 'below');
  const { certificate, key } = await below.issue({ user: 'someone', groups: ['system:masters'] });
  const chain = certificate + (await readFile(below.certificateFile, 'utf8'));
  const options = { port: server.port, host: '127.0.0.1', rejectUnauthorized: false, cert: chain, key };
  const asked = async (session?: Buffer): Promise<{ answer: string; session: Buffer; isReused: boolean }> => {
    const socket = connect({ ...options, ...(session === undefined ? {} : { session }) });
    t.teardown(() => socket.destroy());
    let ticket: Buffer = Buffer.alloc(0);
    let isReused = false;
    socket.once('secureConnect', () => (isReused = socket.isSessionReused()));
    let answer = '';
    socket.on('session', (bytes: Buffer) => (ticket = bytes));
    socket.on('data', (bytes: Buffer) => (answer += bytes.toString()));
    socket.on('error', () => {});
    socket.write(`GET ${exports} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    await once(socket, 'close');
    return { answer: answer.slice(0, 'HTTP/1.1 200'.length), session: ticket, isReused };
  };
  t.is((await asked()).answer, 'HTTP/1.1 200');

  await rotateTo('old', 'next');
  await logged(server, 'client-ca.reloaded');
  const first = await asked();
  const resumed = await asked(first.session);

  t.deepEqual([first.answer, first.isReused], ['HTTP/1.1 200', false]);
  t.deepEqual([resumed.answer, resumed.isReused], ['HTTP/1.1 200', true]);
});

test('a broken file is logged and changes nothing until it is complete', async (t) => {
  const { server, old, next, rotateTo } = await aRotation(t);
  const client = server.client({ as: old, http2: true });
  t.is((await client.raw('GET', exports)).status, 200);

  await rotateTo('broken');
  await logged(server, 'client-ca.reload-failed');
  t.is((await client.raw('GET', exports)).status, 200);
  t.is((await server.client({ as: old }).raw('GET', exports)).status, 200);
  await rotateTo('next');
  await logged(server, 'client-ca.reloaded');

  t.is((await server.client({ as: next }).raw('GET', exports)).status, 200);
});

test('a file of authorities without a certificate fails the start, with a reason', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-no-authority-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'client-ca.crt');
  await writeFile(file, '# to be filled in\n');

  await t.throwsAsync(aServer(t, { flags: { 'client-ca-file': file } }), { message: /client CA file .* holds no certificate/ });
});
