/**
 * `strata status` and `strata shards` against the application behind real TLS, and the errors that
 * an operator may meet.
 */
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server, type ServerOptions } from 'node:https';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RequestListener } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { Authority } from '../../../src/certificates/authority.js';
import { callerOf } from '../../../src/certificates/caller-from-certificate.js';
import { systemClock } from '../../../src/clock.js';
import type { Command } from '../../../src/commands/command.js';
import { parseStatusReport } from '../../../src/domain/status.js';
import { cachesForget, cachesList, formatCaches, knownCaches } from '../../../src/commands/caches.js';
import { resolve } from '../../../src/commands/resolve.js';
import { removalsConfirm, shardsList, shardsRemove } from '../../../src/commands/shards.js';
import { formatShardList, formatStatusTable } from '../../../src/commands/status-table.js';
import { status } from '../../../src/commands/status.js';
import { SettingsError } from '../../../src/config/settings-error.js';
import { Health } from '../../../src/diagnostics/health.js';
import type { Log } from '../../../src/diagnostics/log.js';
import { createMetrics } from '../../../src/diagnostics/metrics.js';
import { CacheError } from '../../../src/domain/errors.js';
import { parseClusterName } from '../../../src/domain/cluster.js';
import type { PathAnswer } from '../../../src/domain/path-resolution.js';
import { parseShardName } from '../../../src/domain/shard.js';
import { createApp } from '../../../src/web/app.js';
import type { KubePorts } from '../../../src/web/kube/call.js';
import { listenerOf } from '../../support/an-exchange.js';
import { noPaths } from '../../support/no-paths.js';
import { aCertificate, aStatusReport, aTreeStatus } from '../../support/status-report.js';
import { TestAuthority } from '../../support/test-authority.js';
import { shared } from '../../support/shared.js';
import { called } from '../../support/commands/called.js';

const noLookUp = (): Promise<never> => Promise.reject(new Error('no look-up'));
const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => silent };
const limits = { syntheticDelayMs: 0, requestTimeoutMs: 1_000, writeTimeoutMs: 1_000, requestsInFlightMax: 10, accessLog: false };

type Town = Readonly<{
  folder: string;
  issuer: TestAuthority;
  /** Flags with a client certificate of the trusted authority. */
  as: (user: string, group: string, uris?: readonly string[], validityDays?: number) => Promise<Readonly<Record<string, string>>>;
  /** A server with a certificate of another authority, which `ca-file` names. */
  serve: (
    t: ExecutionContext,
    handler: RequestListener,
    options?: Readonly<{ names?: readonly [string, ...string[]]; validityDays?: number }>,
  ) => Promise<string>;
}>;

const town = shared(
  async (): Promise<Town> => {
    const folder = await mkdtemp(join(tmpdir(), 'strata-operator-'));
    const issuer = new TestAuthority(folder);
    const serving = await Authority.create({ clock: systemClock }, { name: 'serving', validityDays: 5 });
    await writeFile(join(folder, 'serving-ca.crt'), serving.certificatePem);
    const clientCa = await readFile(issuer.certificateFile, 'utf8');
    return {
      folder,
      issuer,
      as: async (user, group, uris = [], validityDays = 1) => {
        const { certificateFile, keyFile } = issuer.issue({ user, groups: [group], uris, validityDays });
        return { 'cert-file': certificateFile, 'key-file': keyFile, 'ca-file': join(folder, 'serving-ca.crt') };
      },
      serve: async (t, handler, { names = ['127.0.0.1'] as const, validityDays = 5 } = {}) => {
        const { certificatePem, keyPem } = await serving.issueServing({ names, validityDays });
        const options: ServerOptions = { cert: certificatePem, key: keyPem, ca: clientCa, requestCert: true, rejectUnauthorized: false };
        return listening(t, createServer(options, handler));
      },
    };
  },
  ({ folder }) => rm(folder, { recursive: true, force: true }),
);

async function listening(t: ExecutionContext, server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const [amber, birch] = [parseShardName('amber')!, parseShardName('birch')!];
const answers: Readonly<Record<string, PathAnswer>> = {
  'root:org': {
    kind: 'cluster',
    shard: birch,
    cluster: parseClusterName('org1')!,
    path: 'root:org',
    unavailable: false,
    shards: [amber, birch],
    freshness: [
      { shard: amber, current: true, lagMs: 2 },
      { shard: birch, current: true, lagMs: 30 },
    ],
  },
  'root:old': {
    kind: 'cluster',
    shard: amber,
    cluster: parseClusterName('old1')!,
    path: undefined,
    unavailable: true,
    shards: [amber],
    freshness: [{ shard: amber, current: false, lagMs: null }],
  },
  'root:mnt': { kind: 'mount', url: 'https://mounts.example.com/a', unavailable: false, shards: [amber], freshness: [] },
  'root:maybe': { kind: 'uncertain', shards: [amber, birch] },
  'root:early': { kind: 'uncertain', shards: [] },
  'root:both': { kind: 'disputed', cluster: parseClusterName('b1')!, shards: [birch, amber] },
  'root:elsewhere': { kind: 'disputed', cluster: parseClusterName('e1')!, shards: [birch], expected: amber },
  'home:twice': { kind: 'ambiguous', clusters: [parseClusterName('a1')!, parseClusterName('a2')!] },
};

/** The real application, with one shard that can be removed once. */
function aCache(): RequestListener {
  const known = new Set([parseShardName('amber')!]);
  const app = createApp(
    {
      console: undefined,
      ports: { clock: systemClock, heavy: { of: () => ({}) }, limits: { bodyBytesMax: 1 } } as unknown as KubePorts,
      freshness: { report: async () => aStatusReport(), ofType: noLookUp, ofTypeLately: noLookUp },
      shards: { remove: async (shard) => (known.delete(shard) ? { removed: 7 } : undefined) },
      paths: { ...noPaths, answer: async (path) => answers[path] ?? { kind: 'unknown' } },
      removals: { confirm: (of, type) => (of === 'amber' && type !== 'none' ? [{ type: 'apiexports.apis.kcp.io', removes: 120 }] : []) },
      caches: { leave: async (name) => (name === 'east' ? { shards: 2 } : undefined) },
      log: silent,
      metrics: createMetrics({ processMetrics: false }),
      publicPaths: [],
      health: new Health(),
      version: '0.1.0',
    },
    limits,
  );
  return listenerOf(app, (socket) => callerOf(socket as TLSSocket));
}

async function failure(
  t: ExecutionContext,
  command: Command,
  flags: Readonly<Record<string, string>>,
  operands: readonly string[] = [],
): Promise<string> {
  const error = await t.throwsAsync(called(command, { operands, flags }), { instanceOf: CacheError });
  return error.message;
}

test('status prints a table for people, and the JSON of the cache for programs', async (t) => {
  const { as, serve } = await town();
  const flags = { cache: await serve(t, aCache()), ...(await as('admin', 'system:masters')) };

  t.is(await called(status, { flags }), formatStatusTable(aStatusReport(), { isTerminal: false }));
  t.deepEqual(JSON.parse(await called(status, { flags: { ...flags, output: 'json' } })), aStatusReport());
  t.is(await called(shardsList, { flags }), formatShardList(aStatusReport().shards));
});

test('resolve prints where a path leads and how fresh that is, for people and for programs', async (t) => {
  const { as, serve } = await town();
  const flags = { cache: await serve(t, aCache()), ...(await as('admin', 'system:masters')) };
  const printed = async (path: string) => called(resolve, { operands: [path], flags });

  t.is(
    await printed('root:org'),
    ['SHARD   CLUSTER   PATH       AVAILABLE   ENTRIES', 'birch   org1      root:org   yes         current, 30 ms behind', ''].join('\n'),
  );
  t.regex(await printed('root:old'), /amber +old1 +– +no +not current/);
  t.regex(await printed('root:mnt'), /^MOUNTED AT.*\nhttps:\/\/mounts\.example\.com\/a +yes +not current\n$/);
  t.is(await printed('root:nope'), '"root:nope" is unknown: no shard has it.\n');
  t.regex(await printed('root:maybe'), /^"root:maybe" was not found but may exist: .*amber, birch.*--push-paths\.\n$/);
  t.regex(await printed('root:early'), /the cache does not know every shard at present\.\n$/);
  t.regex(await printed('home:twice'), /a1, a2\.\n$/);
  t.regex(await printed('root:both'), /in dispute: b1 is claimed by birch, amber, and no Workspace says where it is\.\n$/);
  t.regex(await printed('root:elsewhere'), /in dispute: e1 is claimed by birch, and its Workspace says that it is on amber\.\n$/);
  t.deepEqual(JSON.parse(await called(resolve, { operands: ['root:org'], flags: { ...flags, output: 'json' } })), answers['root:org']);
  await t.throwsAsync(called(resolve, { operands: [''], flags }), { instanceOf: SettingsError });
});

test('a shard’s own certificate reads the status, and cannot remove anything', async (t) => {
  const { as, serve } = await town();
  const flags = { cache: await serve(t, aCache()), ...(await as('amber', 'strata', ['strata://shard/amber'])) };

  t.is(await called(status, { flags }), formatStatusTable(aStatusReport(), { isTerminal: false }));
  t.regex(await failure(t, shardsRemove, flags, ['amber']), /refused \(403\): forbidden: User "amber" cannot delete path/);
});

test('removing a shard says how many objects were removed, and a second time that the shard is unknown', async (t) => {
  const { as, serve } = await town();
  const flags = { cache: await serve(t, aCache()), ...(await as('admin', 'system:masters')) };

  t.is(await called(shardsRemove, { operands: ['amber'], flags }), 'Removed the shard amber and 7 objects of it.\n');
  t.is(await failure(t, shardsRemove, flags, ['amber']), `${flags.cache} refused (404): shard "amber" not found`);
  await t.throwsAsync(called(shardsRemove, { operands: ['BAD'], flags }), { instanceOf: SettingsError });
});

test('caches are listed for people and programs, and one can be forgotten by its name', async (t) => {
  const { as, serve } = await town();
  const flags = { cache: await serve(t, aCache()), ...(await as('admin', 'system:masters')) };
  const known = knownCaches(aStatusReport());

  t.is(await called(cachesList, { flags }), formatCaches(known));
  t.deepEqual(JSON.parse(await called(cachesList, { flags: { ...flags, output: 'json' } })), known);
  t.is(await called(cachesForget, { operands: ['east'], flags }), 'Forgot the cache east; its 2 shards belong to no cache now.\n');
  t.is(await failure(t, cachesForget, flags, ['west']), `${flags.cache} refused (404): cache "west" not found`);
  await t.throwsAsync(called(cachesForget, { operands: ['BAD'], flags }), { instanceOf: SettingsError });
});

test('shards and objects count for the cache from which they came, and a cache without a tree knows no caches', (t) => {
  const report = aStatusReport();
  const link = aTreeStatus().children[0]!;
  const tree = { ...aTreeStatus(), parent: null, children: [link] };
  const [known] = knownCaches({
    ...report,
    tree,
    shards: report.shards.map((shard) => ({ ...shard, via: `child/${link.name}` as const })),
  });

  t.is(known?.shards, report.shards.length);
  t.is(
    known?.objects,
    report.shards.flatMap(({ slices }) => slices).reduce((sum, { objects }) => sum + objects, 0),
  );
  t.regex(formatCaches(known === undefined ? [] : [known]), /^CACHE +ID +CONNECTION +SHARDS +OBJECTS +CLAIMS\nchild\//);
  t.is(formatCaches(knownCaches({ ...report, tree: undefined })), 'no caches yet\n');
});

test('the error for an anonymous caller gives the likely reason', async (t) => {
  const { as, serve } = await town();
  const flags = { cache: await serve(t, aCache()), ...(await as('admin', 'system:masters', [], -1)) };

  t.regex(
    await failure(t, status, flags),
    /refused \(403\): .*"system:anonymous".*; the client certificate names nobody: it expired at 20.*Z$/,
  );
});

test('the errors for an untrusted server and for an absent server differ', async (t) => {
  const { as, serve, issuer } = await town();
  const admin = await as('admin', 'system:masters');
  const url = await serve(t, aCache());

  t.regex(
    await failure(t, status, { ...admin, cache: url, 'ca-file': issuer.certificateFile }),
    /shows is not one that a CA in .*ca\.crt signed$/,
  );
  t.regex(await failure(t, status, { ...admin, cache: url, 'ca-file': '' }), /give its CA as --ca-file$/);
  t.regex(await failure(t, status, { ...admin, cache: await serve(t, aCache(), { names: ['elsewhere.example'] }) }), /is for other names$/);
  t.regex(
    await failure(t, status, { ...admin, cache: await serve(t, aCache(), { validityDays: -0.01 }) }),
    /has expired, by the clock of this machine, which is at 20/,
  );
  const closed = await aClosedPort();
  t.is(await failure(t, status, { ...admin, cache: closed }), `nothing listens at ${closed}`);
});

async function aClosedPort(): Promise<string> {
  const server = createTcpServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `https://127.0.0.1:${port}`;
}

test('a server that is no cache, answers too late or hangs up gives an error that says so', async (t) => {
  const { as, serve } = await town();
  const admin = await as('admin', 'system:masters');
  const from = async (handler: RequestListener, flags = {}): Promise<string> =>
    failure(t, status, { ...admin, cache: await serve(t, handler), ...flags });

  t.regex(await from((_, response) => response.end('<html>')), /answered 200 and is probably not a Strata cache$/);
  t.regex(await from((_, response) => response.writeHead(502).end('bad gateway')), /answered 502 and is probably not a Strata cache$/);
  t.regex(await from((_, response) => response.end('{"cache":{}}')), /is not the status of a Strata cache: a string is missing$/);
  t.regex(await from(() => {}, { timeout: '100ms' }), /did not answer within 0\.1 s$/);
  t.regex(await from((_, response) => void response.write('{'), { timeout: '100ms' }), /did not answer within 0\.1 s$/);
  t.regex(await from(({ socket }) => socket.destroy()), /cannot be reached$/);
  t.regex(await from((_, response) => void (response.write('{'), response.socket?.destroy())), /cannot be reached$/);
});

test('a port without TLS gives an error that no cache answers there', async (t) => {
  const server = createTcpServer((socket) => socket.end('hello\n')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;

  t.is(
    await failure(t, status, { ...(await (await town()).as('a', 'b')), cache: `https://127.0.0.1:${port}` }),
    `https://127.0.0.1:${port} cannot be reached`,
  );
});

test('a removal that is held needs confirmation by the name of the shard, or of its type as well', async (t) => {
  const { as, serve } = await town();
  const flags = { cache: await serve(t, aCache()), ...(await as('admin', 'system:masters')) };
  const received = 'Confirmed: 120 objects of apiexports.apis.kcp.io of the shard amber leave the cache.\n';

  t.is(await called(removalsConfirm, { operands: ['amber'], flags }), received);
  t.is(await called(removalsConfirm, { operands: ['amber', 'apiexports.apis.kcp.io'], flags }), received);
  t.regex(await failure(t, removalsConfirm, flags, ['amber', 'none']), /refused \(404\): held removal of the shard "amber" not found/);
});

test('missing files and files that do not match are reported before any request to the cache', async (t) => {
  const { as } = await town();
  const [one, two] = [await as('admin', 'system:masters'), await as('admin', 'system:masters')];
  const cache = 'https://127.0.0.1:1';

  t.regex(await failure(t, status, { ...one, cache, 'cert-file': '/absent.crt' }), /cannot read the TLS certificate \/absent\.crt/);
  t.regex(await failure(t, status, { ...one, cache, 'ca-file': '/absent.crt' }), /cannot read the CA of the cache \/absent\.crt/);
  t.regex(await failure(t, status, { ...one, cache, 'key-file': two['key-file']! }), /is not the key of the certificate/);
});

test('a status can be read from caches that report more members, and not from caches that report fewer', (t) => {
  const report = { ...aStatusReport(), certificates: [aCertificate('serving', 40)] };
  const newer = {
    ...report,
    link: {},
    cache: { ...report.cache, tier: 2 },
    shards: report.shards.map((shard) => ({ ...shard, policy: '…' })),
  };

  t.deepEqual(parseStatusReport(JSON.stringify(newer)), report);
  const inATree = { ...report, tree: aTreeStatus() };
  t.deepEqual(parseStatusReport(JSON.stringify(inATree)), inATree);
  for (const junk of [
    null,
    1,
    '',
    [],
    {},
    { ...report, shards: [{}] },
    { ...report, shards: [{ ...report.shards[0], shard: 'BAD' }] },
    { ...report, shards: {} },
    { ...report, certificates: {} },
    { ...report, certificates: [{ ...aCertificate('serving', 40), notAfter: 5 }] },
    { ...report, tree: {} },
    { ...report, tree: { ...report.tree, children: [{}] } },
    { ...report, shards: [{ ...report.shards[0], via: 'child/' }] },
  ])
    t.throws(() => parseStatusReport(JSON.stringify(junk)), { instanceOf: CacheError });
});

test('a status can be read from a cache that reports no tree and no certificates', (t) => {
  const { cache, shards } = aStatusReport();
  const older = shards.map(({ via: _via, standbys: _standbys, slices, ...shard }) => ({
    ...shard,
    slices: slices.map(({ digest: _digest, current: _current, ...slice }) => slice),
  }));

  const read = parseStatusReport(JSON.stringify({ cache, shards: older }));

  t.is(read.tree, undefined);
  t.deepEqual(read.certificates, []);
  t.like(read.shards[0], { via: null, standbys: 0, slices: [{ digest: null, current: null, objects: 12 }] });
});
