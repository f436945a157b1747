import { test } from '../../support/test.js';
import { refusalOf, KubeRefusal } from '../../../src/kube/kube-client.js';
import { stepAfter, syncStep, type ReadStep } from '../../../src/kube/read-step.js';

const status = (code: number, reason: string, message = '', more: object = {}): string =>
  JSON.stringify({ kind: 'Status', code, reason, message, ...more });

const watchList: ReadStep = { kind: 'watch-list' };
const watch: ReadStep = { kind: 'watch', revision: '7' };
const first: ReadStep = { kind: 'list', continueToken: '', revision: undefined, isWhole: false };
const later: ReadStep = { kind: 'list', continueToken: 'there', revision: '7', isWhole: false };
const whole: ReadStep = { ...first, isWhole: true };

const expired = refusalOf(410, status(410, 'Expired'));
const broken = new Error('ECONNRESET');
const absent = refusalOf(404, '404 page not found\n');

test('each refused request of a reader leads to the next step that the table names', (t) => {
  const cases: [asked: ReadStep, error: unknown, next: ReadStep][] = [
    [watchList, new Error('ECONNREFUSED'), watchList],
    [watchList, refusalOf(403, status(403, 'Forbidden')), watchList],
    [watchList, refusalOf(429, status(429, 'TooManyRequests')), watchList],
    [watchList, refusalOf(503, 'no endpoints'), watchList],
    [watchList, refusalOf(422, status(422, 'Invalid')), first],
    [watchList, refusalOf(400, status(400, 'BadRequest')), first],
    [watchList, absent, watchList],
    [first, broken, first],
    [first, refusalOf(500, status(500, 'InternalError')), first],
    [first, refusalOf(400, status(400, 'BadRequest')), first],
    [first, expired, first],
    [later, broken, later],
    [later, refusalOf(500, status(500, 'InternalError')), later],
    [later, expired, whole],
    [later, refusalOf(410, 'gone'), whole],
    [later, refusalOf(400, status(400, 'BadRequest', 'continue key is not valid')), whole],
    [later, refusalOf(410, status(410, 'Expired', '', { metadata: { continue: 'newer' } })), { ...later, continueToken: 'newer' }],
    [later, absent, watchList],
    [whole, expired, whole],
    [watch, broken, watch],
    [watch, refusalOf(401, status(401, 'Unauthorized')), watch],
    [watch, refusalOf(429, status(429, 'TooManyRequests')), watch],
    [watch, refusalOf(500, status(500, 'InternalError')), watch],
    [watch, refusalOf(504, status(504, 'Timeout', 'request timed out')), watch],
    [watch, expired, watchList],
    [watch, refusalOf(400, status(400, 'BadRequest')), watchList],
    [watch, refusalOf(504, status(504, 'Timeout', 'Too large resource version: 900, current: 812')), watchList],
    [watch, absent, watchList],
  ];

  for (const [asked, error, next] of cases) {
    const after = stepAfter(asked, error, { wasAccepted: false, refusesWatchList: false });
    t.deepEqual(after.step, next, `${JSON.stringify(asked)} ${String(error)}`);
    t.is(after.isAbsent, error === absent);
  }
});

test('each broken request of a reader leads to the next step that the table names', (t) => {
  const cases: [asked: ReadStep, error: unknown, next: ReadStep][] = [
    [watchList, broken, first],
    [watchList, refusalOf(0, status(410, 'Expired')), first],
    [first, broken, first],
    [later, broken, later],
    [watch, broken, watch],
    [watch, refusalOf(0, status(410, 'Expired')), watchList],
  ];

  for (const [asked, error, next] of cases)
    t.deepEqual(stepAfter(asked, error, { wasAccepted: true, refusesWatchList: false }).step, next, JSON.stringify(asked));
});

test('a reader asks a shard for no more watch-lists once the shard has refused one', (t) => {
  const { refusesWatchList } = stepAfter(watchList, refusalOf(422, ''), { wasAccepted: false, refusesWatchList: false });

  t.true(refusesWatchList);
  t.deepEqual(syncStep({ refusesWatchList }), first);
  for (const error of [expired, absent])
    t.deepEqual(stepAfter(watch, error, { wasAccepted: true, refusesWatchList }), {
      step: first,
      isAbsent: error === absent,
      refusesWatchList,
    });
});

test('an answer that is no Status is used as the message, shortened', (t) => {
  const refusal = refusalOf(502, `<html>${'x'.repeat(1_000)}`);

  t.true(refusal instanceof KubeRefusal);
  t.is(refusal.status, 502);
  t.is(refusal.message.length, 200);
  t.is(refusalOf(500, 'null').message, 'null');
});

test('if a refusal names two waits, the longer one counts', (t) => {
  const details = { details: { retryAfterSeconds: 3 } };
  t.is(refusalOf(429, status(429, 'TooManyRequests', '', details), '2').retryAfterMs, 3_000);
  t.is(refusalOf(429, status(429, 'TooManyRequests', '', details), '20').retryAfterMs, 20_000);
  t.is(refusalOf(503, 'no endpoints', '4').retryAfterMs, 4_000);
  t.is(refusalOf(503, 'no endpoints', 'Mon, 23 Nov 2026 12:00:00 GMT').retryAfterMs, 0);
  t.is(refusalOf(429, status(429, '', '', { details: { retryAfterSeconds: -1 } }), '-1').retryAfterMs, 0);
});
