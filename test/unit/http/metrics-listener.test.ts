/** The health and the metrics that an agent serves, over the wire. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { systemClock } from '../../../src/clock.js';
import { agentMetricTable } from '../../../src/diagnostics/metric-table.js';
import { Health } from '../../../src/diagnostics/health.js';
import { createLog } from '../../../src/diagnostics/log.js';
import { createMetricsOf } from '../../../src/diagnostics/metrics.js';
import { CacheError } from '../../../src/domain/errors.js';
import { MetricsListener } from '../../../src/http/metrics-listener.js';

const connectionsMax = 32;
const place = { host: '127.0.0.1', port: 0, flag: 'metrics-bind-address' };

function someParts(health = new Health()) {
  const log = createLog({ clock: systemClock, stream: new PassThrough().resume() }, { level: 'info', format: 'json' });
  return { health, metrics: createMetricsOf(agentMetricTable, { processMetrics: false }), clock: systemClock, log };
}

async function aListener(t: ExecutionContext, health?: Health): Promise<Readonly<{ port: number; url: string }>> {
  const listener = await MetricsListener.open(someParts(health), place);
  t.teardown(() => listener.close());
  return { port: listener.port, url: `http://127.0.0.1:${listener.port}` };
}

async function aSocket(t: ExecutionContext, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  t.teardown(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

/** Everything that is received until the other end closes. */
async function answerTo(t: ExecutionContext, port: number, text: string): Promise<string> {
  const socket = await aSocket(t, port);
  let answer = '';
  socket.on('data', (bytes: Buffer) => (answer += bytes.toString('latin1')));
  socket.write(text);
  await once(socket, 'close');
  return answer;
}

test('the listener answers GET and HEAD for health and metrics, and nothing else', async (t) => {
  let reason: string | undefined = 'it is early';
  const health = new Health();
  health.add('readyz', { name: 'cache', isPublic: true, failure: () => reason });
  const { url } = await aListener(t, health);
  const textOf = async (path: string): Promise<string> => (await fetch(`${url}${path}`)).text();

  t.is(await textOf('/livez'), 'ok');
  t.is((await fetch(`${url}/readyz`)).status, 500);
  t.is(await textOf('/readyz'), '[+]ping ok\n[-]cache failed: it is early\n[+]shutdown ok\nreadyz check failed\n');
  t.is(await textOf('/readyz?exclude=cache'), 'ok');
  reason = undefined;
  t.is(await textOf('/readyz'), 'ok');
  t.is(await textOf('/readyz?verbose'), '[+]ping ok\n[+]cache ok\n[+]shutdown ok\nreadyz check passed\n');
  const metrics = await fetch(`${url}/metrics`);
  t.regex(metrics.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/);
  t.regex(await metrics.text(), /^strata_agent_objects_read_total 0$/m);
  const head = await fetch(`${url}/metrics`, { method: 'HEAD' });
  t.true(Number(head.headers.get('content-length')) > 1_000);
  t.is(await head.text(), '');
  for (const path of ['/', '/metrics/', '/livez/x', '/debug/pprof', '//metrics']) t.is((await fetch(`${url}${path}`)).status, 404, path);
});

test('other methods are refused, and the listener waits for no body', async (t) => {
  const { port, url } = await aListener(t);

  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    const refused = await fetch(`${url}/metrics`, { method });
    t.is(refused.status, 405, method);
    t.is(refused.headers.get('allow'), 'GET, HEAD');
  }
  t.regex(
    await answerTo(t, port, 'GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n'),
    /^HTTP\/1\.1 200 OK\r\n[^]*\r\nok$/,
  );
  t.regex(await answerTo(t, port, 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'), /^HTTP\/1\.1 405 /);
  t.is(await answerTo(t, port, 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'), '');
});

test('headers have a bound, and bytes that are not HTTP get 400', async (t) => {
  const { port } = await aListener(t);

  t.regex(await answerTo(t, port, `GET /livez HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(8_192)}\r\n\r\n`), /^HTTP\/1\.1 431 /);
  t.regex(await answerTo(t, port, 'hello\r\n\r\n'), /^HTTP\/1\.1 400 /);
});

test('clients that hold connections keep nobody out, because the oldest connection makes room', async (t) => {
  const { port, url } = await aListener(t);
  const held: Socket[] = [];
  for (let i = 0; i < connectionsMax; i++) held.push(await aSocket(t, port));
  const oldestEnds = once(held[0]!, 'close');

  t.is(await (await fetch(`${url}/livez`)).text(), 'ok');
  await oldestEnds;
  t.is(held.filter(({ closed }) => closed).length, 1);
});

test('a client that sends another request before the answer is cut off, and metrics are not rendered for each request', async (t) => {
  const parts = someParts();
  let rendered = 0;
  parts.metrics.beforeRender(() => void (rendered += 1));
  const listener = await MetricsListener.open(parts, place);
  t.teardown(() => listener.close());
  const ask = 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n';

  await answerTo(t, listener.port, ask.repeat(1_000));

  t.true(rendered <= 1, `${rendered}`);
  const socket = await aSocket(t, listener.port);
  for (let i = 0; i < 3; i++) {
    socket.write('GET /livez HTTP/1.1\r\nHost: a\r\n\r\n');
    t.regex(String((await once(socket, 'data'))[0]), /^HTTP\/1\.1 200 OK\r\n[^]*\r\nok$/);
  }
});

test('the error for an address that cannot be listened to names the address and the option', async (t) => {
  const { port } = await aListener(t);

  const error = await t.throwsAsync(MetricsListener.open(someParts(), { ...place, port }), { instanceOf: CacheError });
  t.regex(
    error.message,
    new RegExp(
      `^cannot listen at 127\\.0\\.0\\.1:${port} for metrics \\(.*EADDRINUSE.*\\); choose another address with --metrics-bind-address$`,
    ),
  );
});
