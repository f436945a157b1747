import { Writable } from 'node:stream';
import { test } from '../../support/test.js';
import { createLog, type Log, type LogOptions } from '../../../src/diagnostics/log.js';

const clock = { now: () => Date.parse('2026-03-01T12:00:00Z'), wallMs: () => Date.parse('2026-03-01T12:00:00Z'), after: () => () => {} };

function logTo(options: LogOptions): { log: Log; written: () => string } {
  const chunks: string[] = [];
  const stream = new Writable({ write: (chunk, _, done) => (chunks.push(String(chunk)), done()) });
  return { log: createLog({ clock, stream }, options), written: () => chunks.join('') };
}

test('an event is one line of JSON with its time, level and fields, written when the call returns', (t) => {
  const { log, written } = logTo({ level: 'info', format: 'json' });

  log.info('shard.connected', { shard: 'amber', revision: 7 });

  t.deepEqual(JSON.parse(written()), {
    level: 'info',
    time: '2026-03-01T12:00:00.000Z',
    event: 'shard.connected',
    shard: 'amber',
    revision: 7,
  });
});

test('durations and rates are written to a tenth', (t) => {
  const { log, written } = logTo({ level: 'info', format: 'json' });

  log.info('link.lost', { afterMs: 1.0108564618069416, revision: 2177623780420883, share: 0.25, name: 'a' });

  t.like(JSON.parse(written()), { afterMs: 1, revision: 2177623780420883, share: 0.3, name: 'a' });
});

test('an event below the level is not written', (t) => {
  const { log, written } = logTo({ level: 'warn', format: 'json' });

  log.debug('a.b');
  log.info('a.b');
  t.is(written(), '');
  log.warn('a.b');
  log.error('a.b');

  t.is(written().trim().split('\n').length, 2);
});

test('a child logger writes the fields of its parent on every line', (t) => {
  const { log, written } = logTo({ level: 'info', format: 'json' });

  log.child({ shard: 'amber' }).child({ session: 3 }).info('session.opened');

  t.like(JSON.parse(written()), { shard: 'amber', session: 3, event: 'session.opened' });
});

test('an error is written with its stack and its causes', (t) => {
  const { log, written } = logTo({ level: 'info', format: 'json' });

  log.error('store.failed', { error: new Error('cannot commit', { cause: new Error('disk full') }) });
  const { error } = JSON.parse(written()) as { error: { message: string; stack: string; cause: { message: string } } };

  t.is(error.message, 'cannot commit');
  t.is(error.cause.message, 'disk full');
  t.regex(error.stack, /log\.test/);
});

test('in the format for people a line has the event and its fields, and is written when the call returns', (t) => {
  const { log, written } = logTo({ level: 'info', format: 'pretty' });

  log.info('shard.connected', { shard: 'amber' });

  t.regex(written(), /INFO.*shard\.connected.*amber/s);
});
