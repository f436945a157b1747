/**
 * Node's http2 answers `Expect: 100-continue` itself where nobody listens to 'checkContinue', and
 * throws if the stream is gone by then. Finds a server process that this ends.
 */
import { test } from '../../support/test.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { RawHttp2 } from '../../support/raw-http2.js';
import { StrataProcess } from '../../support/strata-process.js';

for (const [code, isCorked] of [
  [0, true],
  [2, true],
  [0, false],
] as const)
  test.serial(
    `without a certificate: a POST that expects 100-continue, with some body and reset with ${code}${isCorked ? ' in one write' : ''}, does not end the server`,
    async (t) => {
      const server = await StrataProcess.start();
      t.teardown(() => server[Symbol.asyncDispose]());
      let rounds = 0;
      for (; rounds < 30; rounds += 1) {
        const client = await RawHttp2.open({ port: server.port }).catch(() => undefined);
        if (client === undefined) break;
        await client.until(() => client.hasServerSettings, 'settings', 1000).catch(() => {});
        if (isCorked) client.socket.cork();
        for (let i = 0; i < 8; i += 1) {
          const { id } = client.request('POST', '/livez', { headers: { expect: '100-continue' }, ends: false });
          client.data(id, Buffer.alloc(1000, 'y'), i % 2 === 0);
          client.reset(id, code);
        }
        if (isCorked) client.socket.uncork();
        await sleep(20);
        client.destroy();
      }
      const isAlive = await server
        .client({ as: null })
        .raw('GET', '/livez', { timeoutMs: 3000 })
        .then(
          ({ status }) => status === 200,
          () => false,
        );
      t.true(isAlive, `gone after ${rounds} connections: ${(await server.log()).slice(-500)}`);
    },
  );
