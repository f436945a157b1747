import { test } from '../../support/test.js';
import type { Log } from '../../../src/diagnostics/log.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { silent } from '../../support/test-store.js';
import { Health, HealthLog, report, type HealthCheck } from '../../../src/diagnostics/health.js';

const ping: HealthCheck = { name: 'ping', failure: () => undefined };
const store: HealthCheck = { name: 'store', failure: () => 'disk full' };
const quiet = { verbose: false, excluded: [] };

test('when no check fails the answer is ok, and with verbose it lists each check', (t) => {
  t.deepEqual(report('livez', [ping], quiet), { status: 200, text: 'ok', failures: [] });
  t.is(report('livez', [ping], { verbose: true, excluded: [] }).text, '[+]ping ok\nlivez check passed\n');
});

test('the answer lists a failed check even without verbose; the reason is only in the log', (t) => {
  t.deepEqual(report('readyz', [ping, store], quiet), {
    status: 500,
    text: '[+]ping ok\n[-]store failed: reason withheld\nreadyz check failed\n',
    failures: [{ name: 'store', reason: 'disk full' }],
  });
});

test('an excluded check does not run, and an unknown one is reported', (t) => {
  t.is(
    report('readyz', [ping, store], { verbose: true, excluded: ['store'] }).text,
    '[+]ping ok\n[+]store excluded: ok\nreadyz check passed\n',
  );
  t.is(
    report('readyz', [ping], { verbose: true, excluded: ['b"', 'a', 'a'] }).text,
    '[+]ping ok\nwarn: some health checks cannot be excluded: no matches for "a","b\\""\nreadyz check passed\n',
  );
});

test('readiness ends when the shutdown begins, liveness does not', (t) => {
  const health = new Health();
  t.is(health.report('readyz', quiet).status, 200);

  health.beginShutdown();

  t.is(health.report('readyz', quiet).status, 500);
  t.is(health.report('readyz', { verbose: false, excluded: ['shutdown'] }).status, 200);
  t.is(health.report('livez', quiet).status, 200);
  t.is(health.report('healthz', quiet).status, 200);
});

test('a liveness check is also a readiness check, but not the reverse', (t) => {
  const health = new Health();
  let everSynced = false;
  health.add('readyz', { name: 'synced', failure: () => (everSynced ? undefined : 'not yet') });
  health.add('livez', { name: 'loop', failure: () => undefined });

  t.is(health.report('livez', { verbose: true, excluded: [] }).text, '[+]ping ok\n[+]loop ok\nlivez check passed\n');
  t.is(health.report('readyz', quiet).status, 500);
  everSynced = true;
  t.is(
    health.report('readyz', { verbose: true, excluded: [] }).text,
    '[+]ping ok\n[+]loop ok\n[+]synced ok\n[+]shutdown ok\nreadyz check passed\n',
  );
});

test('everybody sees a reason that is marked public', (t) => {
  const clientCa: HealthCheck = { name: 'client-ca', failure: () => 'no CA', isPublic: true };

  t.is(
    report('readyz', [clientCa, store], quiet).text,
    '[-]client-ca failed: no CA\n[-]store failed: reason withheld\nreadyz check failed\n',
  );
});

test('each check of an endpoint logs at most one line in ten seconds, however often it fails', (t) => {
  const lines: unknown[] = [];
  const log: Log = { ...silent, warn: (_, fields) => void lines.push(fields) };
  const clock = new ManualClock();
  const healthLog = new HealthLog({ clock, log });
  const failing = { ...report('readyz', [store, { name: 'parent', failure: () => 'away' }], quiet) };

  for (let asked = 0; asked < 100; asked += 1) healthLog.failed('readyz', failing);
  healthLog.failed('livez', report('livez', [store], quiet));
  clock.advance(10_000);
  healthLog.failed('readyz', failing);

  t.deepEqual(lines, [
    { endpoint: 'readyz', name: 'store', reason: 'disk full' },
    { endpoint: 'readyz', name: 'parent', reason: 'away' },
    { endpoint: 'livez', name: 'store', reason: 'disk full' },
    { endpoint: 'readyz', name: 'store', reason: 'disk full', unlogged: 99 },
    { endpoint: 'readyz', name: 'parent', reason: 'away', unlogged: 99 },
  ]);
});
