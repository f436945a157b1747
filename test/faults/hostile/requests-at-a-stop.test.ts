/**
 * Requests while the server stops. Finds a write that is stored and not answered, an answer that is
 * cut off, and a last answer over HTTP/1.1 without `Connection: close`.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { aClient, get, post } from './http1-requests.js';
import { aPath, anApiExport } from '../../support/objects.js';
import type { RawAnswer, RawHttp1 } from '../../support/raw-http1.js';
import { RawHttp2 } from '../../support/raw-http2.js';
import { StrataProcess } from '../../support/strata-process.js';
import { aServer, until } from '../../support/test-server.js';

const connections = 8;
const large = 3_000_000;

async function aProcess(t: ExecutionContext): Promise<StrataProcess> {
  const server = await StrataProcess.start();
  t.teardown(() => server[Symbol.asyncDispose]());
  return server;
}

async function stored(server: StrataProcess): Promise<readonly string[]> {
  return (await server.client().list(aPath())).items.map(({ metadata }) => metadata.name ?? '');
}

function nameIn({ text }: RawAnswer): string {
  return (JSON.parse(text) as { metadata: { name: string } }).metadata.name;
}

function endsIt({ headers }: RawAnswer): boolean {
  return headers['connection'] === 'close';
}

test.serial('SIGTERM while clients of HTTP/1.1 write one object after the other: each write that is stored was answered', async (t) => {
  const server = await aProcess(t);
  for (const [round, bytes] of [10, 40_000, 300, 5].entries()) {
    const answers: RawAnswer[] = [];
    const write = async (client: RawHttp1, which: number): Promise<void> => {
      for (let i = 0; ; i += 1) {
        client.send(post(`r${round}-${which}-${i}`, 'x'.repeat(bytes)));
        const answer = await client.answer(i, 30_000);
        if (answer !== undefined) answers.push(answer);
        if (answer === undefined || endsIt(answer)) return;
      }
    };
    const clients = await Promise.all(Array.from({ length: connections }, () => aClient(t, { port: server.port, as: server.master })));
    // The others may all be between two writes at the stop. This client is not: it sends its body
    // when they have ended.
    const last = await aClient(t, { port: server.port, as: server.master });
    const [head, body] = post(`r${round}-last`).split('\r\n\r\n');
    last.send(`${head}\r\nexpect: 100-continue\r\n\r\n`);
    await last.until(() => last.interim === 1, '100 Continue');
    const written = Promise.all(clients.map(write));
    await until(() => answers.length >= connections * (round + 1));

    const stopped = server.stop();
    await written;
    last.send(body!);
    const lastAnswer = await last.answer(0);

    t.is(await stopped, 0);
    t.deepEqual([lastAnswer?.status, lastAnswer && endsIt(lastAnswer)], [201, true]);
    answers.push(lastAnswer!);
    await server.resume();
    const lost = (await stored(server)).filter(
      (name) => name.startsWith(`r${round}-`) && !answers.some((answer) => nameIn(answer) === name),
    );
    t.deepEqual(lost, []);
  }
});

test.serial(
  'SIGTERM while writes wait for one another on a connection: each that is stored was answered, and no answer but the last says close',
  async (t) => {
    const server = await aProcess(t);
    const clients = await Promise.all(Array.from({ length: connections }, () => aClient(t, { port: server.port, as: server.master })));
    for (const [which, client] of clients.entries())
      client.send(Array.from({ length: 20 }, (_, i) => post(`p${which}-${i}`, 'x'.repeat(500))).join(''));
    await until(() => clients.every(({ answers }) => answers.length > 0));

    await server.stop();
    for (const client of clients) await client.until(() => client.isClosed, 'the end');

    for (const { answers } of clients) {
      t.deepEqual(
        answers.map(({ status }) => status),
        answers.map(() => 201),
      );
      t.false(answers.slice(0, -1).some(endsIt));
    }
    await server.resume();
    const answered = clients.flatMap(({ answers }) => answers.map(nameIn));
    t.deepEqual((await stored(server)).toSorted(), answered.toSorted());
  },
);

test('a stop ends idle connections without an answer and without waiting for the grace', async (t) => {
  const server = await aServer(t, { flags: { 'shutdown-grace': '5m' } });
  const [used, unused] = [await aClient(t, { port: server.port }), await aClient(t, { port: server.port })];
  await used.ask('GET', '/livez');

  await server.stop();

  t.deepEqual([used.isClosed, unused.isClosed], [true, true]);
  t.is(used.answers.length + unused.answers.length, 1);
  t.is(used.unread + unused.unread, '');
});

test('a write that has half arrived at the stop is answered, and a request behind it is not handled', async (t) => {
  const server = await aServer(t);
  const client = await aClient(t, { port: server.port, as: server.master });
  const whole = post('half');
  client.send(whole.slice(0, -10));
  await until(async () => (await server.metric('strata_requests_in_flight')) === 2);

  const stopped = server.stop();
  client.send(whole.slice(-10) + post('late'));
  await client.until(() => client.isClosed, 'the end');
  await stopped;

  t.deepEqual(
    client.answers.map((answer) => [answer.status, endsIt(answer)]),
    [[201, true]],
  );
  const again = await server.restart();
  t.teardown(() => again.close());
  t.deepEqual(
    (await again.client().list(aPath())).items.map(({ metadata }) => metadata.name),
    ['half'],
  );
});

test('requests that wait behind a watch are answered once the stop has ended it', async (t) => {
  const server = await aServer(t);
  const client = await aClient(t, { port: server.port, as: server.master });
  client.send(get(`${aPath()}?watch=true`) + post('behind') + get('/livez'));
  await until(async () => (await server.metric('strata_watches_open')) === 1);

  await server.stop();
  await client.until(() => client.isClosed, 'the end');

  t.deepEqual(
    client.answers.map((answer) => [answer.status, endsIt(answer)]),
    [
      [200, false],
      [201, false],
      [200, true],
    ],
  );
});

for (const protocol of ['HTTP/1.1', 'HTTP/2'])
  test(`over ${protocol} an answer that is under way at the stop reaches a client that reads on as a whole`, async (t) => {
    const server = await aServer(t, { flags: { 'shutdown-grace': '1m' } });
    for (const name of ['a', 'b']) await server.client().create(aPath(), anApiExport({ name }, { spec: { text: 'x'.repeat(large) } }));
    const place = { port: server.port, as: server.master };
    const client = protocol === 'HTTP/2' ? await RawHttp2.open(place) : await aClient(t, place);
    t.teardown(() => client.destroy());
    if (client instanceof RawHttp2) client.request('GET', aPath());
    else client.send(get(aPath()));
    await until(() => (client instanceof RawHttp2 ? [...client.streams.values()].some(({ bytes }) => bytes > 0) : client.unread !== ''));
    client.stopReading();

    const stopped = server.stop();
    client.socket.resume();
    await client.until(() => client.isClosed, 'the end', 60_000);
    await stopped;

    const [bytes, isWhole] =
      client instanceof RawHttp2
        ? [client.streams.get(1)?.bytes ?? 0, client.streams.get(1)?.isWhole]
        : [client.answers[0]?.text.length ?? 0, client.answers.length === 1];
    t.true(isWhole);
    t.true(bytes > 2 * large, `${bytes} bytes`);
  });

test('over HTTP/2 a write that comes after GOAWAY is not handled, and one before it is answered', async (t) => {
  const server = await aServer(t);
  const client = await RawHttp2.open({ port: server.port, as: server.master });
  t.teardown(() => client.destroy());
  const body = (name: string): Buffer => Buffer.from(JSON.stringify(anApiExport({ name })));
  const headers = { 'content-type': 'application/json' };
  const before = client.request('POST', aPath(), { headers, ends: false });
  await until(async () => (await server.metric('strata_requests_in_flight')) === 2);

  const stopped = server.stop();
  await client.until(() => client.goaway !== undefined, 'GOAWAY');
  const behind = client.request('POST', aPath(), { headers, ends: false });
  client.data(behind.id, body('behind'), true);
  client.data(before.id, body('before'), true);
  await client.until(() => client.isClosed, 'the end');
  await stopped;

  t.is(client.goaway?.lastStream, before.id);
  t.deepEqual([before.status, before.isWhole, behind.status], [201, true, 0]);
  const again = await server.restart();
  t.teardown(() => again.close());
  t.deepEqual(
    (await again.client().list(aPath())).items.map(({ metadata }) => metadata.name),
    ['before'],
  );
});
