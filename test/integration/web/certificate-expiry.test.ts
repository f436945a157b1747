import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from '../../support/test.js';
import { Authority } from '../../../src/certificates/authority.js';
import { systemClock } from '../../../src/clock.js';
import { aServer } from '../../support/test-server.js';
import { TestAuthority } from '../../support/test-authority.js';

const dayMs = 86_400_000;

test('status, metrics and log say when the serving certificate, the client CA and the certificate for the parent expire', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-expiry-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const authority = new TestAuthority(folder, { validityDays: 29 });
  const serving = await Authority.create({ clock: systemClock }, { name: 'serving', validityDays: 5 });
  const pair = await serving.issueServing({ names: ['127.0.0.1'], validityDays: -1 / 1440 });
  const [certFile, keyFile] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
  await writeFile(certFile, pair.certificatePem);
  await writeFile(keyFile, pair.keyPem);
  const child = authority.issue({ user: 'eu', groups: ['strata'], uris: ['strata://cache/eu'], validityDays: 60 });
  const parent = { 'parent-urls': 'https://127.0.0.1:1', 'parent-cert-file': child.certificateFile, 'parent-key-file': child.keyFile };
  const server = await aServer(t, {
    authority,
    flags: { 'tls-cert-file': certFile, 'tls-private-key-file': keyFile, ...parent, 'parent-ready-grace': '0s' },
  });

  const { certificates } = JSON.parse((await server.client().raw('GET', '/services/cache/status')).text) as {
    certificates: { use: string; file: string; notAfter: string; expiresInMs: number }[];
  };
  t.deepEqual(
    certificates.map(({ use, file }) => [use, file]),
    [
      ['serving', certFile],
      ['client-ca', authority.certificateFile],
      ['parent', child.certificateFile],
    ],
  );
  for (const [index, days] of [0, 29, 60].entries()) {
    const { notAfter, expiresInMs } = certificates[index]!;
    t.true(Math.abs(expiresInMs - days * dayMs) < dayMs / 24);
    t.true(Math.abs(Date.parse(notAfter) - Date.now() - expiresInMs) < 60_000);
  }
  const { text } = await server.client().raw('GET', '/metrics');
  const seconds = Object.fromEntries(
    [...text.matchAll(/^strata_certificate_expires_seconds\{use="([a-z-]+)"\} (\S+)$/gm)].map(([, use = '', value]) => [
      use,
      Number(value),
    ]),
  );
  for (const { use, notAfter } of certificates) t.is(seconds[use], Date.parse(notAfter) / 1000, use);
  t.deepEqual(
    server.logged
      .filter(({ event }) => event.startsWith('certificate.exp'))
      .map(({ level, event, fields }) => [level, event, (fields as { use: string }).use]),
    [
      ['error', 'certificate.expired', 'serving'],
      ['warn', 'certificate.expires-soon', 'client-ca'],
    ],
  );
  t.true((await readFile(certFile, 'utf8')).startsWith('-----BEGIN'));
});
