/**
 * Requests that look at every object of a type and show none take turns with each other, and end
 * when their client leaves. A server with the fault read a page for each of hundreds of requests in
 * one round of the event loop. It also went on with lists whose client was gone.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../support/test.js';
import { longestTurnMs, meteredEnvironment } from '../support/longest-turn.js';
import { aPath } from '../support/objects.js';
import { RawHttp2 } from '../support/raw-http2.js';
import { processorSeconds } from '../support/process-figures.js';
import { pushedExport, RawPusher, sliceOf } from '../support/raw-pusher.js';
import { StrataProcess } from '../support/strata-process.js';

/** A server with the fault took 250 to 650 ms. */
const turnMsMax = 50;
const objects = 10_000;
const connections = 4;
const streams = 90;

const folder = mkdtempSync(join(tmpdir(), 'strata-walkers-'));
const starting = StrataProcess.start({ environment: meteredEnvironment(folder) });

test.before('there are many objects', async () => {
  const server = await starting;
  const slice = sliceOf('apiexports');
  const pusher = await RawPusher.open(server);
  pusher.begin(slice);
  for (let i = 0; i < objects; i += 500)
    await pusher.acknowledged(
      pusher.put(
        slice,
        Array.from({ length: 500 }, (_, j) => pushedExport(`e${i + j}`)),
      ),
    );
  await pusher.acknowledged(pusher.end(slice, objects));
  pusher.socket.terminate();
});

test.after.always('the server ends', async () => {
  await (await starting)[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const walks: readonly (readonly [string, string, (i: number) => string])[] = [
  ['deletes of a collection', 'DELETE', () => `${aPath({ shard: 'amber', cluster: 'acme' })}?labelSelector=no%3Done`],
  ['pages of a list', 'GET', () => `${aPath()}?limit=1&labelSelector=no%3Done`],
  ['lists with selectors of their own', 'GET', (i) => `${aPath()}?labelSelector=no%3Done${i}`],
  [
    'watches with initial events',
    'GET',
    (i) =>
      `${aPath()}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=no%3Done${i}`,
  ],
];

for (const [what, method, pathOf] of walks)
  test(`${connections * streams} ${what} that show nothing cause no turn of more than ${turnMsMax} ms, and end with their client`, async (t) => {
    const server = await starting;
    let clients: readonly RawHttp2[] = [];
    const leave = (): void => clients.forEach((client) => client.destroy());
    t.teardown(leave);
    const prepare = async (): Promise<void> => {
      leave();
      clients = await Promise.all(Array.from({ length: connections }, () => RawHttp2.open({ port: server.port, as: server.master })));
      for (const client of clients) t.is((await client.ask('GET', '/readyz')).status, 200);
    };
    const ask = (): void => {
      for (const [at, client] of clients.entries()) for (let i = 0; i < streams; i += 1) client.request(method, pathOf(at * streams + i));
    };

    const longestMs = await longestTurnMs(folder, { roundsMax: 4, enoughMs: turnMsMax, prepare }, async () => {
      ask();
      for (let i = 0; i < 20; i += 1) t.is((await server.client().raw('GET', '/readyz')).status, 200);
      leave();
      for (let i = 0; i < 5; i += 1) t.is((await server.client().raw('GET', '/readyz')).status, 200);
    });

    t.log(`${longestMs} ms`);
    t.true(longestMs <= turnMsMax, `${longestMs} ms`);
    // If they went on, their walks would take the server many seconds more.
    const before = processorSeconds(server.pid).own;
    await sleep(1_000);
    const afterS = processorSeconds(server.pid).own - before;
    t.true(afterS < 0.5, `${afterS} s of the processor in the second after they left`);
  });
