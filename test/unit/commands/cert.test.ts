/**
 * `strata cert`: its certificates verify, an authority is made once and never lost, and nothing is
 * overwritten without --force.
 */
import { X509Certificate } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { Authority } from '../../../src/certificates/authority.js';
import { parseCaller } from '../../../src/certificates/caller-from-certificate.js';
import { certAdmin, certCache, certServing, certShard } from '../../../src/commands/cert.js';
import type { Command } from '../../../src/commands/command.js';
import { SettingsError } from '../../../src/config/settings-error.js';
import { CacheError } from '../../../src/domain/errors.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { called } from '../../support/commands/called.js';

const nowMs = Date.parse('2026-03-01T12:00:00Z');
const dayMs = 86_400_000;

type Workplace = Readonly<{
  folder: string;
  file: (...names: readonly string[]) => string;
  cert: (command: Command, operands?: readonly string[], flags?: Readonly<Record<string, string>>) => Promise<string>;
}>;

function aWorkplace(t: ExecutionContext): Workplace {
  const folder = mkdtempSync(join(tmpdir(), 'strata-cert-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const file = (...names: readonly string[]): string => join(folder, ...names);
  const cert: Workplace['cert'] = (command, operands = [], flags = {}) =>
    called(command, {
      operands,
      flags: { 'ca-directory': file('ca'), 'out-directory': folder, ...flags },
      surroundings: { clock: new ManualClock(nowMs) },
    });
  return { folder, file, cert };
}

function certificateIn(path: string): X509Certificate {
  return new X509Certificate(readFileSync(path));
}

test('each command writes the certificate that it is named for, signed by one authority and valid for as long as asked', async (t) => {
  const { file, cert } = aWorkplace(t);

  await cert(certShard, ['amber'], { validity: '10d' });
  await cert(certCache, ['region-1'], { validity: '10d' });
  await cert(certAdmin, [], { validity: '10d' });
  await cert(certServing, ['localhost', '127.0.0.1', '*.acme.example'], { validity: '10d' });

  const authority = certificateIn(file('ca', 'ca.crt'));
  const issued = ['shard-amber', 'cache-region-1', 'admin', 'serving-localhost'].map((name) => certificateIn(file(`${name}.crt`)));
  for (const certificate of issued) {
    t.true(certificate.verify(authority.publicKey));
    t.is(Date.parse(certificate.validTo), nowMs + 10 * dayMs);
  }
  const [amber, region, admin] = issued.map(parseCaller);
  t.like(amber, { user: 'amber', groups: ['strata'], speaksFor: { kind: 'shard', shard: 'amber' } });
  t.like(region, { user: 'region-1', groups: ['strata'], speaksFor: { kind: 'cache', name: 'region-1' } });
  t.like(admin, { user: 'admin', groups: ['system:masters'], speaksFor: undefined });
  t.is(issued[3]!.subjectAltName, 'DNS:localhost, IP Address:127.0.0.1, DNS:*.acme.example');
});

test('keys are for their owner only, whatever they replace', async (t) => {
  const { file, cert } = aWorkplace(t);

  await cert(certShard, ['amber']);
  chmodSync(file('shard-amber.key'), 0o644);
  await cert(certShard, ['amber'], { force: 'true' });

  for (const key of [file('shard-amber.key'), file('ca', 'ca.key')]) t.is(statSync(key).mode & 0o777, 0o600);
});

test('the command prints what it wrote, and how to use it', async (t) => {
  const { file, cert } = aWorkplace(t);

  const first = await cert(certShard, ['amber']);
  const second = await cert(certShard, ['birch']);

  t.is(
    first,
    [
      `Wrote ${file('shard-amber.crt')} and ${file('shard-amber.key')}. The certificate speaks for the shard amber and reads everything, until 2027-03-01T12:00Z.`,
      `It is signed by a new authority, ${file('ca', 'ca.crt')}. Whoever has ${file('ca', 'ca.key')} can sign more: keep it to yourself.`,
      `  the cache    strata serve --client-ca-file ${file('ca', 'ca.crt')}`,
      `  the shard    strata push --shard-name amber --cert-file ${file('shard-amber.crt')} --key-file ${file('shard-amber.key')}`,
      '',
    ].join('\n'),
  );
  t.true(second.includes(`It is signed by ${file('ca', 'ca.crt')}.\n`));
});

test('an existing certificate is overwritten only by force', async (t) => {
  const { file, cert } = aWorkplace(t);
  await cert(certShard, ['amber']);
  const before = readFileSync(file('shard-amber.crt'), 'utf8');

  await t.throwsAsync(cert(certShard, ['amber']), { instanceOf: CacheError, message: /would be overwritten; --force does so/ });
  t.is(readFileSync(file('shard-amber.crt'), 'utf8'), before);
  unlinkSync(file('shard-amber.crt'));
  await t.throwsAsync(cert(certShard, ['amber']), { instanceOf: CacheError, message: /shard-amber\.key would be overwritten/ });
  await cert(certShard, ['amber'], { force: 'true' });

  t.not(readFileSync(file('shard-amber.crt'), 'utf8'), before);
});

test('the authority, the administrator and other certificates have separate pairs, even by force in one folder', async (t) => {
  const { folder, file, cert } = aWorkplace(t);
  const here = { 'ca-directory': folder, force: 'true' };
  await cert(certAdmin, [], here);
  const kept = ['ca.crt', 'ca.key', 'admin.crt', 'admin.key'];
  const before = kept.map((name) => readFileSync(file(name), 'utf8'));

  for (const name of ['ca', 'admin', 'amber', 'shard-amber', 'cache-amber', 'serving-amber']) {
    await cert(certShard, [name], here);
    await cert(certCache, [name], here);
    await cert(certServing, [name], here);
  }

  t.deepEqual(
    kept.map((name) => readFileSync(file(name), 'utf8')),
    before,
  );
  const users = readdirSync(folder)
    .filter((name) => name.endsWith('.crt') && !kept.includes(name))
    .map((name) => `${name} ${certificateIn(file(name)).subject.split('CN=')[1]}`);
  t.is(users.length, 18);
  t.true(
    users.every((user) => /^(?:shard|cache|serving)-(\S+)\.crt \1$/.test(user)),
    users.join(),
  );
});

test('force prints what it replaces', async (t) => {
  const { file, cert } = aWorkplace(t);
  await cert(certAdmin);
  const replaced = await cert(certAdmin, [], { force: 'true', validity: '10d' });
  writeFileSync(file('admin.crt'), 'junk');
  const junk = await cert(certAdmin, [], { force: 'true' });
  const first = await cert(certShard, ['amber'], { force: 'true' });

  const until = new Date(nowMs + 365 * dayMs).toISOString();
  t.deepEqual(replaced.split('\n').slice(0, 2), [
    `Replaced ${file('admin.crt')}, which was of O=system:masters, CN=admin until ${until}.`,
    `Replaced ${file('admin.key')}.`,
  ]);
  t.true(junk.startsWith(`Replaced ${file('admin.crt')}, which was not a certificate.\n`));
  t.true(first.startsWith('Wrote '));
});

test('half an authority is an error that names the missing file, and nothing is made', async (t) => {
  for (const [lost, kept] of [
    ['ca.key', 'ca.crt'],
    ['ca.crt', 'ca.key'],
  ] as const) {
    const { file, cert } = aWorkplace(t);
    await cert(certAdmin);
    unlinkSync(file('ca', lost));

    const error = await t.throwsAsync(cert(certShard, ['amber']), { instanceOf: CacheError });

    t.true(error.message.startsWith(`${file('ca', kept)} exists and ${file('ca', lost)} does not`), error.message);
    t.false(existsSync(file('shard-amber.crt')));
    t.false(existsSync(file('ca', lost)));
  }
});

test('an authority that cannot sign is an error that says why', async (t) => {
  const { file, cert } = aWorkplace(t);
  await cert(certAdmin);
  const authority = readFileSync(file('ca', 'ca.crt'), 'utf8');
  const clock = new ManualClock(nowMs);
  const other = await Authority.create({ clock }, { name: 'other', validityDays: 1 });
  const leaf = await other.issueClient({ user: 'amber', groups: [], validityDays: 1 });
  const shortLived = await Authority.create({ clock }, { name: 'short', validityDays: -0.01 });
  const inCa = (certificate: string, key: string): void => {
    writeFileSync(file('ca', 'ca.crt'), certificate);
    writeFileSync(file('ca', 'ca.key'), key);
  };

  inCa(authority, other.keyPem);
  await t.throwsAsync(cert(certShard, ['amber']), { message: /is not the key of the certificate/ });
  inCa('junk', other.keyPem);
  await t.throwsAsync(cert(certShard, ['amber']), { message: /holds no PEM certificate/ });
  inCa(leaf.certificatePem, leaf.keyPem);
  await t.throwsAsync(cert(certShard, ['amber']), { message: /is not the certificate of a CA/ });
  inCa(shortLived.certificatePem, shortLived.keyPem);
  await t.throwsAsync(cert(certShard, ['amber']), { message: /expired at/ });
  inCa(other.certificatePem, other.keyPem);
  await t.throwsAsync(cert(certShard, ['amber'], { validity: '2d' }), {
    message: /valid until 2026-03-02T12:00Z; choose a shorter --validity/,
  });
  t.false(existsSync(file('shard-amber.crt')));
});

test('an invalid name is reported before anything is made', async (t) => {
  const { folder, file, cert } = aWorkplace(t);

  for (const name of ['', 'Amber', 'a/b', '..', '*', 'a'.repeat(62)])
    await t.throwsAsync(cert(certShard, [name]), { instanceOf: SettingsError, message: /is not the name of a shard/ }, name);
  for (const id of ['', 'Region', 're:gion', '../x'])
    await t.throwsAsync(cert(certCache, [id]), { instanceOf: SettingsError, message: /is not the name of a cache/ }, id);
  await t.throwsAsync(cert(certServing, ['localhost', 'a b', '300.1.1.1']), {
    instanceOf: SettingsError,
    message: '"a b" is neither a DNS name nor an IP address\n"300.1.1.1" is neither a DNS name nor an IP address',
  });

  t.true(existsSync(folder));
  t.false(existsSync(file('ca')));
});

test('a directory that cannot be written is an error that names it', async (t) => {
  const { file, cert } = aWorkplace(t);
  writeFileSync(file('taken'), '');

  await t.throwsAsync(cert(certAdmin, [], { 'ca-directory': file('taken', 'ca') }), {
    instanceOf: CacheError,
    message: /cannot keep an authority in/,
  });
  await t.throwsAsync(cert(certAdmin, [], { 'out-directory': file('taken', 'out') }), { instanceOf: CacheError, message: /cannot write/ });
});
