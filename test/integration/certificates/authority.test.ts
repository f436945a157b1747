import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { test } from '../../support/test.js';
import { Authority } from '../../../src/certificates/authority.js';
import { parseCaller } from '../../../src/certificates/caller-from-certificate.js';
import { anonymous } from '../../../src/domain/caller.js';
import { parseShardName } from '../../../src/domain/shard.js';

const run = promisify(execFile);
const nowMs = Date.parse('2026-03-01T12:00:00Z');
const clock = { now: () => nowMs, wallMs: () => nowMs, after: () => () => {} };
const create = (): Promise<Authority> => Authority.create({ clock }, { name: 'amber authority', validityDays: 100 });

test('a certificate is valid from an hour before its issue until the end of its validity', async (t) => {
  const authority = await create();

  const leaf = new X509Certificate((await authority.issueServing({ names: ['localhost'], validityDays: 10 })).certificatePem);

  t.is(Date.parse(leaf.validFrom), nowMs - 3_600_000);
  t.is(Date.parse(leaf.validTo), nowMs + 10 * 86_400_000);
});

test('a serving certificate is valid for each of its names and for no other, and is no CA', async (t) => {
  const authority = await create();

  const leaf = new X509Certificate(
    (await authority.issueServing({ names: ['localhost', '127.0.0.1', '::1', 'amber.example'], validityDays: 10 })).certificatePem,
  );

  t.truthy(leaf.checkHost('localhost'));
  t.truthy(leaf.checkHost('amber.example'));
  t.truthy(leaf.checkIP('127.0.0.1'));
  t.truthy(leaf.checkIP('::1'));
  t.falsy(leaf.checkHost('birch.example'));
  t.falsy(leaf.checkIP('127.0.0.2'));
  t.false(leaf.ca);
  t.true(leaf.verify(new X509Certificate(authority.certificatePem).publicKey));
});

test('two certificates of one authority never share a serial', async (t) => {
  const authority = await create();

  const issued = await Promise.all(Array.from({ length: 20 }, () => authority.issueClient({ user: 'amber', groups: [], validityDays: 1 })));

  t.is(new Set(issued.map(({ certificatePem }) => new X509Certificate(certificatePem).serialNumber)).size, 20);
});

test('a certificate names the shard or the cache it was issued for', async (t) => {
  const authority = await create();
  const spokenFor = [
    { kind: 'shard', shard: parseShardName('amber')! },
    { kind: 'cache', name: 'region-1' },
  ] as const;

  for (const speaksFor of spokenFor) {
    const issued = await authority.issueClient({ user: 'amber', groups: ['strata'], speaksFor, validityDays: 1 });
    t.deepEqual(parseCaller(new X509Certificate(issued.certificatePem)).speaksFor, speaksFor);
  }
});

test('an authority that is loaded again signs like the one that was saved', async (t) => {
  const { certificatePem, keyPem } = await create();

  const again = await Authority.load({ clock }, { certificatePem, keyPem });
  const leaf = new X509Certificate((await again.issueClient({ user: 'amber', groups: [], validityDays: 1 })).certificatePem);

  t.true(leaf.verify(new X509Certificate(certificatePem).publicKey));
  await t.throwsAsync(Authority.load({ clock }, { certificatePem, keyPem: 'no key' }));
});

const oddNames = [
  { user: 'a,b', groups: ['x, O=system:masters'] },
  { user: 'CN=root+O=system:masters', groups: ['a/b', 'c;d', '"quoted"'] },
  { user: 'line\nbreak', groups: ['O=system:masters\nO=system:masters', '\\', '#04024869'] },
  { user: 'ümläut 名前 🐢', groups: ['grüppe', ' leading and trailing '] },
  { user: 'amber', groups: [] },
  { user: 'cache-client', groups: ['system:masters', 'second', 'third'] },
];

for (const { user, groups } of oddNames) {
  test(`a caller has exactly the names in its certificate, whatever characters they contain: ${JSON.stringify({ user, groups })}`, async (t) => {
    const authority = await create();

    const { certificatePem } = await authority.issueClient({ user, groups, validityDays: 1 });

    t.deepEqual(parseCaller(new X509Certificate(certificatePem)), { user, groups, validUntilMs: nowMs + 86_400_000 });
  });
}

test('a certificate without a CN names nobody, whatever its groups', async (t) => {
  const authority = await create();

  const { certificatePem } = await authority.issueClient({ user: '', groups: ['system:masters'], validityDays: 1 });

  t.is(parseCaller(new X509Certificate(certificatePem)), anonymous);
});

test('openssl verifies what the authority signs, and refuses what another one of the same name signed', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-authority-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const real = { now: () => Date.now(), wallMs: () => Date.now(), after: () => () => {} };
  const [authority, impostor] = await Promise.all(
    [1, 2].map(() => Authority.create({ clock: real }, { name: 'amber authority', validityDays: 10 })),
  );
  const [good, bad] = await Promise.all(
    [authority!, impostor!].map((by) => by.issueServing({ names: ['localhost', '::1'], validityDays: 5 })),
  );
  const files = { 'ca.crt': authority!.certificatePem, 'good.crt': good!.certificatePem, 'bad.crt': bad!.certificatePem };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  const verify = (name: string): Promise<{ stdout: string }> =>
    run('openssl', ['verify', '-x509_strict', '-purpose', 'sslserver', '-CAfile', join(folder, 'ca.crt'), join(folder, name)]);

  const verified = await verify('good.crt').catch((error: NodeJS.ErrnoException) => error);

  if ('code' in verified && verified.code === 'ENOENT') {
    t.pass('no openssl here');
    return;
  }
  t.regex((verified as { stdout: string }).stdout, /good\.crt: OK/);
  await t.throwsAsync(verify('bad.crt'));
});
