/**
 * Which client certificates a file of authorities verifies. A TLS handshake under the same file is
 * the reference: `vouchesFor` may accept only certificates that OpenSSL has accepted.
 */
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, createServer, type TLSSocket } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { processorMs } from '../../support/fastest.js';
import { test } from '../../support/test.js';
import { ClientAuthorities } from '../../../src/certificates/client-authorities.js';
import type { LogFields } from '../../../src/diagnostics/log.js';
import type { Log } from '../../../src/diagnostics/log.js';
import { CacheError } from '../../../src/domain/errors.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { selfSigned, type Certificate } from '../../support/test-authority.js';
import { OpensslAuthority } from '../../support/certificates/openssl-authority.js';

const minuteMs = 60_000;
const dayMs = 86_400_000;

async function aFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-authorities-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

function parts(nowMs = Date.now()) {
  const logged: [string, LogFields][] = [];
  const write = (event: string, fields: LogFields = {}): void => void logged.push([event, fields]);
  const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log };
  return { clock: new ManualClock(nowMs), log, logged };
}

async function anAuthority(t: ExecutionContext, name: string): Promise<OpensslAuthority> {
  return OpensslAuthority.create(await aFolder(t), { name });
}

async function pemOf({ certificateFile }: OpensslAuthority): Promise<string> {
  return readFile(certificateFile, 'utf8');
}

/** What a server that trusts the authorities of `ca` sees of a client with this chain. */
async function seen(t: ExecutionContext, ca: string, { certificate, key }: Pick<Certificate, 'certificate' | 'key'>) {
  const serving = selfSigned(['localhost']);
  const server = createServer({ cert: serving.certificate, key: serving.key, ca, requestCert: true, rejectUnauthorized: false });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = connect({ port, host: '127.0.0.1', cert: certificate, key, rejectUnauthorized: false });
  client.on('error', () => {});
  const [socket] = (await once(server, 'secureConnection')) as [TLSSocket];
  t.teardown(() => {
    client.destroy();
    server.close();
  });
  return { authorized: socket.authorized, certificate: socket.getPeerX509Certificate()! };
}

async function openWith(t: ExecutionContext, pem: string, nowMs?: number): Promise<ClientAuthorities> {
  const file = join(await aFolder(t), 'client-ca.crt');
  await writeFile(file, pem);
  return ClientAuthorities.open(parts(nowMs), file);
}

test('a malformed file is refused, and the error names the broken block', async (t) => {
  const folder = await aFolder(t);
  const authority = OpensslAuthority.create(folder);
  const sound = await pemOf(authority);
  const { certificate: leaf, key } = await authority.issue({ user: 'amber', groups: [] });
  const below = await pemOf(await authority.intermediate(await aFolder(t), 'below'));
  const cases: [string, string, RegExp][] = [
    ['nothing', '', /holds no certificate/],
    ['other text', 'no certificate at all\n', /holds no certificate/],
    ['a broken second block', `${sound}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`, /block 2 of .* cannot be read/],
    ['a second block without an end', `${sound}${sound.slice(0, 300)}`, /block 2 of .* cannot be read/],
    ['a block without an end before a sound one', `${sound.slice(0, 300)}\n${sound}`, /block 1 of .* cannot be read/],
    ['a key', `${sound}${key}`, /block 2 of .* is not a certificate but "PRIVATE KEY"/],
    ['a certificate of nobody who signs', `${sound}${leaf}`, /block 2 of .* is not the certificate of a CA: CN=amber/],
    ['an intermediate alone', below, /holds no self-signed CA/],
    ['too many', sound.repeat(257), /257 certificates; at most 256 are allowed/],
  ];
  for (const [what, pem, message] of cases) await t.throwsAsync(openWith(t, pem), { instanceOf: CacheError, message }, what);

  t.throws(() => ClientAuthorities.open(parts(), join(folder, 'absent')), { message: /cannot read the client CA file .*absent/ });
  await t.notThrowsAsync(openWith(t, `# old\n${sound}\n# new\n${await pemOf(await anAuthority(t, 'other'))}${below}`));
});

test('an authority verifies what it signed, also through intermediates that the peer sent, and nothing else', async (t) => {
  const root = await anAuthority(t, 'root');
  const other = await anAuthority(t, 'root');
  const below = await root.intermediate(await aFolder(t), 'below');
  const deepest = await below.intermediate(await aFolder(t), 'deepest');
  const narrow = await root.intermediate(await aFolder(t), 'narrow', 'basicConstraints=critical,CA:TRUE,pathlen:0');
  const tooDeep = await narrow.intermediate(await aFolder(t), 'too-deep');
  const noAuthority = await root.intermediate(await aFolder(t), 'no-authority', 'basicConstraints=critical,CA:FALSE');
  const constrained = await root.intermediate(
    await aFolder(t),
    'constrained',
    'basicConstraints=critical,CA:TRUE\nnameConstraints=critical,permitted;URI:.example.org',
  );
  // The clock is a minute ahead, because the certificates issued below are valid only from their
  // issue.
  const authorities = await openWith(t, (await pemOf(await anAuthority(t, 'first'))) + (await pemOf(root)), Date.now() + minuteMs);
  const chain = async (
    signer: OpensslAuthority,
    ...above: readonly OpensslAuthority[]
  ): Promise<Pick<Certificate, 'certificate' | 'key'>> => {
    const { certificate, key } = await signer.issue({ user: 'amber', groups: [] });
    return { certificate: certificate + (await Promise.all(above.map(pemOf))).join(''), key };
  };
  const cases: [string, Pick<Certificate, 'certificate' | 'key'>, boolean][] = [
    ['signed by the root', await chain(root), true],
    ['through one', await chain(below, below), true],
    ['through two, in whichever order', await chain(deepest, below, deepest), true],
    ['with the root itself', await chain(below, below, root), true],
    ['through one that was not sent', await chain(deepest, deepest), false],
    ['by another of the same name', await chain(other), false],
    ['deeper than an intermediate allows', await chain(tooDeep, tooDeep, narrow), false],
    ['through what is no authority', await chain(noAuthority, noAuthority), false],
    ['expired', await root.issue({ user: 'amber', groups: [], validityDays: -1 }), false],
  ];

  for (const [what, shown, expected] of cases) {
    const { authorized, certificate } = await seen(t, authorities.pem, shown);
    t.is(authorized, expected, `${what}: the handshake`);
    // Node 24 does not expose intermediates of the peer. The server then rejects a certificate that
    // needs them, and the client makes a new handshake.
    const isJudged = certificate.issuer === 'CN=root' || certificate.issuerCertificate !== undefined;
    t.is(authorities.vouchesFor(certificate), expected && isJudged, what);
  }
  const unjudged = await seen(t, authorities.pem, await chain(constrained, constrained));
  t.false(authorities.vouchesFor(unjudged.certificate), 'a certificate without its intermediates is not accepted');
});

test('the validity periods of the certificate and of the authority both count', async (t) => {
  const root = await anAuthority(t, 'root');
  const { certificate } = await root.issue({ user: 'amber', groups: [], validityDays: 2 });
  const long = await root.issue({ user: 'birch', groups: [], validityDays: 60 });
  const vouchesIn = async (days: number, pem: string): Promise<boolean> =>
    (await openWith(t, await pemOf(root), Date.now() + days * dayMs)).vouchesFor(new X509Certificate(pem));

  t.true(await vouchesIn(1, certificate));
  t.false(await vouchesIn(3, certificate));
  t.false(await vouchesIn(-1, certificate));
  t.true(await vouchesIn(29, long.certificate));
  t.false(await vouchesIn(31, long.certificate));
});

test('a certificate for servers names no client', async (t) => {
  const root = await anAuthority(t, 'root');
  const folder = await aFolder(t);
  const serving = await root.intermediate(folder, 'serving', 'extendedKeyUsage=serverAuth');
  const shown = { certificate: await pemOf(serving), key: await readFile(join(folder, 'ca.key'), 'utf8') };
  const authorities = await openWith(t, await pemOf(root));

  const { authorized, certificate } = await seen(t, authorities.pem, shown);

  t.deepEqual([authorized, authorities.vouchesFor(certificate)], [false, false]);
});

test('the time to check intermediates that all sign each other grows only with their number', async (t) => {
  const root = await anAuthority(t, 'root');
  const elsewhere = await anAuthority(t, 'elsewhere');
  const loop = await elsewhere.intermediate(await aFolder(t), 'elsewhere');
  const { certificate, key } = await elsewhere.issue({ user: 'amber', groups: [] });
  const sent = certificate + (await pemOf(loop)).repeat(4) + (await pemOf(elsewhere)).repeat(4);
  const authorities = await openWith(t, await pemOf(root));
  const { certificate: shown } = await seen(t, await pemOf(root), { certificate: sent, key });

  const startedMs = processorMs();
  t.false(authorities.vouchesFor(shown));
  t.true(processorMs() - startedMs < 500);
});

test('another file takes effect at once, also through a swapped symlink; a broken one is logged, and the old authorities stay', async (t) => {
  const folder = await aFolder(t);
  const [first, second] = [await anAuthority(t, 'first'), await anAuthority(t, 'second')];
  const file = join(folder, 'client-ca.crt');
  await mkdir(join(folder, 'v1'));
  await mkdir(join(folder, 'v2'));
  await writeFile(join(folder, 'v1', 'ca.crt'), await pemOf(first));
  await writeFile(join(folder, 'v2', 'ca.crt'), await pemOf(second));
  await symlink(join('v1', 'ca.crt'), file);
  const { clock, log, logged } = parts();
  const authorities = ClientAuthorities.open({ clock, log }, file);
  let changes = 0;
  const polled = authorities.watch({ filesPollMs: 1_000 }, () => void (changes += 1));
  const ofSecond = new X509Certificate((await second.issue({ user: 'amber', groups: [] })).certificate);

  clock.advance(1_000);
  t.deepEqual([changes, authorities.vouchesFor(ofSecond)], [0, false]);
  await unlink(file);
  clock.advance(1_000);
  await writeFile(file, 'half of');
  clock.advance(1_000);
  t.is(authorities.pem, await pemOf(first));
  await unlink(file);
  await symlink(join('v2', 'ca.crt'), join(folder, 'next'));
  await rename(join(folder, 'next'), file);
  clock.advance(1_000);

  t.deepEqual([changes, authorities.vouchesFor(ofSecond)], [1, true]);
  t.deepEqual(
    logged.map(([event]) => event),
    ['client-ca.reload-failed', 'client-ca.reload-failed', 'client-ca.reloaded'],
  );
  t.deepEqual(polled.reload(), { kind: 'unchanged' });
  polled.close();
  t.is(clock.pending, 0);
});
