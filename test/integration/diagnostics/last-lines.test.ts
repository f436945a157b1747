import { test } from '../../support/test.js';
import { LastLines } from '../../../src/diagnostics/last-lines.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { silent } from '../../support/test-store.js';

test('the newest warnings, errors and refusals are kept first, with the fields of child loggers', (t) => {
  const clock = new ManualClock();
  const lines = new LastLines(clock);
  const log = lines.wrap(silent);
  log.info('server.started');
  log.warn('push.refused', { reason: 'Invalid', count: 2 });
  clock.advance(500);
  log.child({ shard: 'amber' }).error('push.failed', { error: new Error('it broke') });
  log.info('request.refused', { verb: 'update' });

  t.deepEqual(lines.read(), [
    { agoMs: 0, level: 'info', event: 'request.refused', fields: 'verb=update' },
    { agoMs: 0, level: 'error', event: 'push.failed', fields: 'shard=amber error=it broke' },
    { agoMs: 500, level: 'warn', event: 'push.refused', fields: 'reason=Invalid count=2' },
  ]);
});

test('every line also goes to the log', (t) => {
  const seen: string[] = [];
  const note = (event: string): void => void seen.push(event);
  const log = new LastLines(new ManualClock()).wrap({ ...silent, debug: note, info: note, warn: note, error: note });
  log.debug('a');
  log.info('b');
  log.warn('c');
  log.error('d');

  t.deepEqual(seen, ['a', 'b', 'c', 'd']);
});

test('at most 50 lines are kept, with at most 512 characters of fields each', (t) => {
  const lines = new LastLines(new ManualClock());
  const log = lines.wrap(silent);
  for (let i = 0; i < 60; i++) log.warn('noise', { i, text: 'x'.repeat(10_000) });

  t.is(lines.read().length, 50);
  t.true(lines.read()[0]!.fields.startsWith('i=59 '));
  t.true(lines.read().every(({ fields }) => fields.length <= 512));
});

test('lines about refused strangers displace no other lines', (t) => {
  const lines = new LastLines(new ManualClock());
  const log = lines.wrap(silent);
  log.error('store.commit-failed', { reason: 'disk' });
  log.info('request.refused', { verb: 'create' });
  for (let i = 0; i < 500; i++) log.warn('request.forbidden', { i });

  const events = lines.read().map(({ event }) => event);
  t.is(events.length, 22);
  t.true(events.includes('store.commit-failed') && events.includes('request.refused'));
});

test('a kept line does not keep a long text in memory, and an unprintable value does not prevent the line', (t) => {
  const lines = new LastLines(new ManualClock());
  const log = lines.wrap(silent);
  const circular: { self?: unknown } = {};
  circular.self = circular;
  log.warn('odd', { circular, big: 1n });
  t.is(lines.read()[0]!.fields, 'circular=… big=…');

  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 50; i++) log.error('long', { error: new Error(`${i}${'x'.repeat(4_000_000)}`) });
  globalThis.gc?.();
  t.true(process.memoryUsage().heapUsed - before < 100_000_000);
});
