import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { CacheConnection } from '../../../src/lookup/cache-connection.js';
import { defaultLookupBounds, type LookupBounds } from '../../../src/lookup/cache-reader.js';
import { ManualClock } from '../../support/store/manual-clock.js';
import { until } from '../../support/test-server.js';
import { faultOf } from '../../support/lookup/a-reader.js';
import { CacheStandIn } from './cache-stand-in.js';

type Answering = (request: IncomingMessage, response: ServerResponse) => void;

async function aConnection(t: ExecutionContext, answer: Answering, bounds: Partial<LookupBounds> = {}) {
  const standIn = await CacheStandIn.start(t, answer);
  const clock = new ManualClock();
  const { certificate, key } = standIn;
  const identity = () => ({ ca: certificate, certificate, key });
  const connection = new CacheConnection({ clock, identity }, { ...defaultLookupBounds, ...bounds, cache: standIn.url });
  t.teardown(() => connection.close());
  return { standIn, clock, connection };
}

const silent: Answering = () => {};
const fine: Answering = (_, response) => void response.end('fine');

test('sequential requests share a connection, and leave no timer behind', async (t) => {
  const { standIn, clock, connection } = await aConnection(t, fine);

  await connection.ask('/a?b=c');
  const answer = await connection.ask('/d');

  t.deepEqual(answer, { status: 200, text: 'fine', retryAfterMs: undefined });
  t.deepEqual(standIn.requests, ['/a?b=c', '/d']);
  t.is(standIn.connections, 1);
  t.is(clock.pending, 0);
});

test('a request ends when its time is up, even in the middle of an answer', async (t) => {
  const { standIn, clock, connection } = await aConnection(t, (request, response) => {
    if (request.url === '/half') response.write('half');
  });

  for (const [asked, path] of ['/none', '/half'].entries()) {
    const answer = connection.ask(path);
    await until(() => standIn.requests.length === asked + 1);
    clock.advance(defaultLookupBounds.timeoutMs);
    t.is(await faultOf(t, answer), 'overdue 0');
  }
  await until(() => standIn.sockets.size === 0);
});

test('a request whose signal is aborted ends with the reason, before or after it was sent', async (t) => {
  const { standIn, clock, connection } = await aConnection(t, silent);
  const [before, after] = [new AbortController(), new AbortController()];
  before.abort(new Error('never mind'));

  await t.throwsAsync(connection.ask('/', before.signal), { message: 'never mind' });
  t.is(standIn.requests.length, 0);
  const answer = connection.ask('/', after.signal);
  await until(() => standIn.requests.length === 1);
  after.abort(new Error('enough'));

  await t.throwsAsync(answer, { message: 'enough' });
  t.is(clock.pending, 0);
});

test('an answer larger than the bound fails at the bound', async (t) => {
  const endless: Answering = (_, response) => {
    const more = (): void => {
      if (!response.destroyed) response.write(Buffer.alloc(10_000), more);
    };
    more();
  };
  const { standIn, connection } = await aConnection(t, endless, { answerBytesMax: 100_000 });

  t.is(await faultOf(t, connection.ask('/')), 'too-long 0');
  await until(() => standIn.sockets.size === 0);
});

test('a request beyond the maximum is refused at once, and the next is sent once one has ended', async (t) => {
  const waiting: ServerResponse[] = [];
  const { connection } = await aConnection(t, (_, response) => void waiting.push(response), { connectionsMax: 1, questionsMax: 2 });
  const [first, second] = [connection.ask('/1'), connection.ask('/2')];

  t.is(await faultOf(t, connection.ask('/3')), 'busy 0');
  for (const count of [1, 2]) {
    await until(() => waiting.length === count);
    waiting.at(-1)?.end(String(count));
  }
  t.deepEqual([(await first).text, (await second).text], ['1', '2']);

  const fourth = connection.ask('/4');
  await until(() => waiting.length === 3);
  waiting.at(-1)?.end('4');
  t.is((await fourth).text, '4');
});

test('a request on a connection that the cache just closed is retried; a connection that breaks during an answer is a fault', async (t) => {
  const { standIn, connection } = await aConnection(t, (request, response) => {
    if (request.url === '/stale' && standIn.connections === 1) request.socket.destroy();
    else if (request.url === '/broken') {
      response.write('half');
      setImmediate(() => request.socket.destroy());
    } else response.end('fine');
  });
  await connection.ask('/');

  t.is((await connection.ask('/stale')).text, 'fine');
  t.is(standIn.connections, 2);
  t.deepEqual(standIn.requests, ['/', '/stale', '/stale']);
  t.is(await faultOf(t, connection.ask('/broken')), 'unreachable 0');
  t.is(standIn.requests.length, 4);
});

test('a request that is not a read is not sent again, because the cache may have executed it', async (t) => {
  const { standIn, connection } = await aConnection(t, (request, response) => {
    if (request.url === '/stale') request.socket.destroy();
    else response.end('fine');
  });
  await connection.ask('/');

  t.is(await faultOf(t, connection.ask('/stale', undefined, 'POST')), 'unreachable 0');
  t.deepEqual(standIn.requests, ['/', '/stale']);
});

test('a silent cache, or one whose certificate the CA did not sign, is unreachable; redirects are not followed', async (t) => {
  const { standIn, connection } = await aConnection(t, (_, response) => void response.writeHead(301, { location: '/elsewhere' }).end());
  const other = await CacheStandIn.start(t, fine);
  const { certificate, key } = standIn;
  const toOther = new CacheConnection(
    { clock: new ManualClock(), identity: () => ({ ca: certificate, certificate, key }) },
    { ...defaultLookupBounds, cache: other.url },
  );
  t.teardown(() => toOther.close());

  t.is(await faultOf(t, toOther.ask('/')), 'unreachable 0');
  t.is(other.requests.length, 0);
  t.is((await connection.ask('/')).status, 301);
  t.is(standIn.requests.length, 1);
  t.throws(
    () =>
      new CacheConnection(
        { clock: new ManualClock(), identity: () => ({ ca: undefined, certificate, key }) },
        { ...defaultLookupBounds, cache: 'http://a' },
      ),
    { message: 'http://a is not an https URL' },
  );
});

test('closing ends requests in progress, and refuses later ones', async (t) => {
  const { standIn, connection } = await aConnection(t, silent);
  const answer = connection.ask('/');
  await until(() => standIn.requests.length === 1);

  connection.close();

  t.is(await faultOf(t, answer), 'closed 0');
  t.is(await faultOf(t, connection.ask('/')), 'closed 0');
  await until(() => standIn.sockets.size === 0);
});

test('an error carries the time after which to retry, if the cache gives it in seconds', async (t) => {
  const { connection } = await aConnection(t, (request, response) => {
    const later = request.url === '/seconds' ? '2' : 'Wed, 21 Oct 2026 07:28:00 GMT';
    response.writeHead(429, { 'retry-after': later }).end();
  });

  t.is((await connection.ask('/seconds')).retryAfterMs, 2_000);
  t.is((await connection.ask('/date')).retryAfterMs, undefined);
});
