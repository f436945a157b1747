/**
 * When many request bodies end in one read, the server handles one body a turn, as it does for
 * requests whose headers arrive at once.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { connect, type ClientHttp2Stream } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { freeze, thaw } from '../support/freeze.js';
import { longestTurnMs, meteredEnvironment } from '../support/longest-turn.js';
import { aPath } from '../support/objects.js';
import { StrataProcess } from '../support/strata-process.js';

/** One body takes 40 ms. A server with the fault took 1 s for 40 of them in one turn. */
const turnMsMax = 100;
const bodies = 40;

const path = aPath({ shard: 'amber', cluster: 'acme' });

/** A body with as much metadata as one object may have. */
function aBody(name: string): Buffer {
  const annotations = Array.from({ length: 9_000 }, (_, i) => `"k${i}.example.org/a-name":"v"`).join(',');
  const metadata = `{"name":"${name}","annotations":{${annotations}}}`;
  return Buffer.from(`{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIExport","metadata":${metadata}}`);
}

type Sent = Readonly<{ end: (last: Buffer) => void; status: Promise<number> }>;

function overHttp2(server: StrataProcess, t: ExecutionContext): (body: Buffer) => Sent {
  const { certificate: cert, key } = server.master;
  const session = connect(server.url, { cert, key, ca: server.certificate });
  t.teardown(() => session.destroy());
  return (body) => {
    const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/json', 'content-length': body.length };
    const stream: ClientHttp2Stream = session.request(headers);
    stream.write(body.subarray(0, -1));
    stream.resume();
    // Waits for the end of the answer, so that nothing of it is in memory in the next round.
    const ended = once(stream, 'end');
    const status = once(stream, 'response').then(async ([answered]) => {
      await ended;
      return Number((answered as Record<string, unknown>)[':status']);
    });
    return { end: (last) => stream.end(last), status };
  };
}

function overHttp1(server: StrataProcess): (body: Buffer) => Sent {
  const { certificate: cert, key } = server.master;
  return (body) => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length };
    const asked = request(server.url + path, { method: 'POST', cert, key, ca: server.certificate, agent: false, headers });
    asked.write(body.subarray(0, -1));
    const status = once(asked, 'response').then(async ([answered]) => {
      const response = answered as IncomingMessage;
      response.resume();
      await once(response, 'end');
      return response.statusCode ?? 0;
    });
    return { end: (last) => asked.end(last), status };
  };
}

for (const [http, over] of [
  ['HTTP/2', overHttp2],
  ['HTTP/1.1', overHttp1],
] as const)
  test.serial(
    `${bodies} bodies that end at once over ${http} cause no turn of more than ${turnMsMax} ms, and all are stored`,
    async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'strata-bodies-'));
      t.teardown(() => rmSync(folder, { recursive: true, force: true }));
      await using server = await StrataProcess.start({ environment: meteredEnvironment(folder) });
      const send = over(server, t);
      let named = 0;
      let sent: readonly (Sent & { body: Buffer })[] = [];
      const prepare = async (): Promise<void> => {
        sent = Array.from({ length: bodies }, () => {
          const body = aBody(`o${(named += 1)}`);
          return { ...send(body), body };
        });
        // Once the server has answered these requests, it has received all bodies but their last
        // bytes.
        for (let i = 0; i < 3; i += 1) await server.client().raw('GET', '/readyz');
      };

      const longestMs = await longestTurnMs(folder, { roundsMax: 4, enoughMs: turnMsMax, prepare }, async () => {
        await freeze(server.pid);
        for (const { end, body } of sent) end(body.subarray(-1));
        // Gives the event loop turns, so that the written bytes reach the kernel.
        await new Promise((done) => setTimeout(done, 100));
        thaw(server.pid);
        for (const { status } of sent) t.is(await status, 201);
      });

      t.log(`${longestMs} ms`);
      t.true(longestMs <= turnMsMax, `${longestMs} ms`);
    },
  );
