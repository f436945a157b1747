/** When certificates expire, and what is logged about it. */
import { X509Certificate } from 'node:crypto';
import { test } from '../../support/test.js';
import { Authority } from '../../../src/certificates/authority.js';
import { CertificateExpiry, certificatesIn, parsedOnce, type UsedCertificates } from '../../../src/certificates/certificate-expiry.js';
import type { Log, LogFields } from '../../../src/diagnostics/log.js';
import { ManualClock } from '../../support/store/manual-clock.js';

const nowMs = Date.parse('2026-03-01T12:00:00Z');
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const lookMs = 30_000;

function setUp() {
  const clock = new ManualClock(nowMs);
  const logged: [string, string, LogFields][] = [];
  const at =
    (level: string) =>
    (event: string, fields: LogFields = {}): void =>
      void logged.push([level, event, fields]);
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => log };
  const events = (): readonly string[] => logged.map(([level, event, { use }]) => `${level} ${event} ${String(use)}`);
  return { clock, log, logged, events };
}

async function aPem(clock: ManualClock, validityDays: number): Promise<string> {
  const authority = await Authority.create({ clock }, { name: 'authority', validityDays: 3650 });
  return (await authority.issueServing({ names: ['localhost'], validityDays })).certificatePem;
}

test('a certificate of one minute is logged as a warning at once and as an error once expired, each once a day', async (t) => {
  const { clock, log, logged, events } = setUp();
  const used = certificatesIn('serving', 'tls.crt', await aPem(clock, 1 / (24 * 60)));
  const expiry = new CertificateExpiry({ clock, log }, [() => used]);
  expiry.watch(lookMs);
  t.teardown(() => expiry.close());

  t.deepEqual(events(), ['warn certificate.expires-soon serving']);
  t.like(logged[0]?.[2], { file: 'tls.crt', subject: 'CN=localhost', notAfter: '2026-03-01T12:01:00.000Z', daysLeft: 0 });
  clock.advance(minuteMs - 1);
  t.is(logged.length, 1);
  clock.advance(lookMs);
  t.is(events()[1], 'error certificate.expired serving');
  clock.advance(dayMs - 2 * lookMs);
  t.is(logged.length, 2);
  clock.advance(2 * lookMs);
  t.is(events()[2], 'error certificate.expired serving');
  t.is(logged.length, 3);
});

test('warnings begin thirty days before a certificate expires, and stop once it is replaced', async (t) => {
  const { clock, log, logged, events } = setUp();
  const other = certificatesIn('client-ca', 'ca.crt', await aPem(clock, 31));
  let serving = certificatesIn('serving', 'tls.crt', await aPem(clock, 29));
  const expiry = new CertificateExpiry({ clock, log }, [() => serving, () => other]);
  expiry.watch(lookMs);
  t.teardown(() => expiry.close());

  t.deepEqual(events(), ['warn certificate.expires-soon serving']);
  t.is(logged[0]?.[2]['daysLeft'], 29);
  clock.advance(dayMs);
  serving = certificatesIn('serving', 'tls.crt', await aPem(clock, 365));
  clock.advance(10 * dayMs);

  t.is(events().filter((event) => event.endsWith('serving')).length, 2);
  t.is(events().filter((event) => event.endsWith('client-ca')).length, 11);
});

for (const use of ['shard', 'cache'] as const)
  test(`an agent’s certificate for its ${use} is warned about in the last seventh of its life`, async (t) => {
    const { clock, log, events } = setUp();
    const used = certificatesIn(use, 'agent.crt', await aPem(clock, 7));
    const [{ notAfter = '' } = {}] = used;
    const lifeMs = Date.parse(notAfter) - Date.parse(new X509Certificate(await aPem(clock, 7)).validFrom);
    const expiry = new CertificateExpiry({ clock, log }, [() => used]);
    expiry.watch(lookMs);
    t.teardown(() => expiry.close());

    clock.advance(Date.parse(notAfter) - nowMs - Math.floor(lifeMs / 7) - lookMs);
    t.deepEqual(events(), []);
    clock.advance(2 * lookMs);
    t.deepEqual(events(), [`warn certificate.expires-soon ${use}`]);
    t.false('warnMs' in (expiry.report()[0] ?? {}));
  });

test('the report has every certificate in use that can be read', async (t) => {
  const { clock, log, events } = setUp();
  const authorities = certificatesIn('client-ca', 'ca.crt', (await aPem(clock, 29)) + (await aPem(clock, 40)));
  let isReadable = true;
  const read = (): UsedCertificates => {
    if (!isReadable) throw new Error('ENOENT');
    return authorities;
  };
  const serving = certificatesIn('serving', 'tls.crt', await aPem(clock, 365));
  const expiry = new CertificateExpiry({ clock, log }, [read, () => serving]);
  expiry.watch(lookMs);
  clock.advance(dayMs);

  t.deepEqual(
    expiry.report().map(({ expiresInMs, notAfter }) => [expiresInMs, notAfter]),
    [
      [28 * dayMs, '2026-03-30T12:00:00.000Z'],
      [39 * dayMs, '2026-04-10T12:00:00.000Z'],
      [364 * dayMs, '2027-03-01T12:00:00.000Z'],
    ],
  );
  isReadable = false;
  t.deepEqual(
    expiry.report().map(({ use }) => use),
    ['serving'],
  );
  clock.advance(dayMs);
  t.deepEqual(new Set(events()), new Set(['warn certificate.expires-soon client-ca']));
  expiry.close();
  t.is(clock.pending, 0);
});

test('a file is parsed again once its content changes or cannot be read', async (t) => {
  const { clock } = setUp();
  const [one, other] = [await aPem(clock, 40), await aPem(clock, 50)];
  let pem: string | undefined = one;
  const used = parsedOnce(() => (pem === undefined ? undefined : { use: 'serving', file: 'tls.crt', pem }));

  const first = used();
  t.is(used(), first);
  pem = other;
  t.not(used()[0]?.notAfter, first[0]?.notAfter);
  pem = one;
  t.deepEqual(used(), first);
  pem = '-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----';
  t.throws(used);
  pem = undefined;
  t.deepEqual(used(), []);
});
