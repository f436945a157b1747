import test from 'ava';
import { refusalOf, ShardRefusal } from '../../src/shard/kube-client.js';
import { reactTo, type ReadReaction } from '../../src/shard/read-failure.js';

const status = (code: number, reason: string, message = ''): string => JSON.stringify({ kind: 'Status', code, reason, message });

test('each failure of a reader has exactly one reaction', (t) => {
  const cases: [ReadReaction, unknown, Parameters<typeof reactTo>[1]][] = [
    ['resume', new Error('ECONNRESET'), 'watch'],
    ['resume', new Error('ECONNREFUSED'), 'watch-list'],
    ['resync', refusalOf(410, status(410, 'Expired')), 'watch'],
    ['resync', refusalOf(0, status(410, 'Expired')), 'watch'],
    ['resync', refusalOf(410, 'gone'), 'list'],
    ['resync', refusalOf(504, status(504, 'Timeout', 'Too large resource version: 900, current: 812')), 'watch'],
    ['resume', refusalOf(504, status(504, 'Timeout', 'request timed out')), 'watch'],
    ['list', refusalOf(422, status(422, 'Invalid')), 'watch-list'],
    ['list', refusalOf(400, status(400, 'BadRequest')), 'watch-list'],
    ['resume', refusalOf(400, status(400, 'BadRequest')), 'list'],
    ['resync', refusalOf(400, status(400, 'BadRequest')), 'watch'],
    ['absent', refusalOf(404, '404 page not found\n'), 'watch-list'],
    ['absent', refusalOf(404, status(404, 'NotFound')), 'watch'],
    ['resume', refusalOf(401, status(401, 'Unauthorized')), 'watch'],
    ['resume', refusalOf(403, status(403, 'Forbidden')), 'watch-list'],
    ['resume', refusalOf(429, status(429, 'TooManyRequests')), 'watch'],
    ['resume', refusalOf(500, status(500, 'InternalError')), 'watch'],
    ['resume', refusalOf(503, 'no endpoints'), 'watch-list'],
  ];

  for (const [expected, error, asked] of cases) t.is(reactTo(error, asked), expected, `${String(error)} ${asked}`);
});

test('an answer that is no Status is its own message, shortened', (t) => {
  const refusal = refusalOf(502, `<html>${'x'.repeat(1_000)}`);

  t.true(refusal instanceof ShardRefusal);
  t.is(refusal.status, 502);
  t.is(refusal.message.length, 200);
  t.is(refusalOf(500, 'null').message, 'null');
});
