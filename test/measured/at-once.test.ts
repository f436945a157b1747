/**
 * No turn of the event loop takes long for what arrived while the server got no processor time. The
 * test stops the server with SIGSTOP meanwhile, so that it finds the whole batch at once on any
 * machine.
 */
import type { ExecutionContext } from 'ava';
import { test } from '../support/test.js';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freeze, thaw } from '../support/freeze.js';
import type { KubeClient } from '../support/kube-client.js';
import { longestTurnMs, meteredEnvironment } from '../support/longest-turn.js';
import { aPath } from '../support/objects.js';
import { RawHttp2 } from '../support/raw-http2.js';
import { StrataProcess } from '../support/strata-process.js';
import { until } from '../support/test-server.js';

/**
 * Linux counts processor time to the nearest tick of its scheduler, 4 ms at most. A server with the
 * fault took 27 to 40 ms. The rest is Node's own work, some 10 µs for each stream.
 */
const turnMsMax = 20;
const watchesOfOne = 100;
const settleMs = 300;

async function aServer(t: ExecutionContext): Promise<Readonly<{ server: StrataProcess; folder: string }>> {
  t.timeout(120_000);
  const folder = mkdtempSync(join(tmpdir(), 'strata-turns-'));
  const server = await StrataProcess.start({ environment: meteredEnvironment(folder) });
  t.teardown(async () => {
    await server[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  return { server, folder };
}

/** Stops the server while the task runs, so that the server finds all that it sent in one turn. */
async function whileStopped({ pid }: StrataProcess, task: () => void): Promise<void> {
  await freeze(pid);
  try {
    task();
    await sleep(settleMs);
  } finally {
    thaw(pid);
  }
}

test.serial(`1,000 watches that their clients end at once cause no turn of more than ${turnMsMax} ms`, async (t) => {
  const { server, folder } = await aServer(t);
  const client = server.client();
  const clients = await Promise.all(Array.from({ length: 10 }, () => RawHttp2.open({ port: server.port, as: server.master })));
  t.teardown(() => clients.forEach((client) => client.destroy()));
  let watches: readonly ReturnType<RawHttp2['request']>[] = [];
  const open = async (): Promise<void> => {
    watches = clients.flatMap((client, i) =>
      Array.from({ length: watchesOfOne }, (_, j) => client.request('GET', `${aPath({ shard: '*', cluster: `c${i}-${j}` })}?watch=true`)),
    );
    await until(() => watches.every(({ status }) => status === 200), 20_000);
    await sleep(settleMs);
  };

  const turnMs = await longestTurnMs(folder, { roundsMax: 8, enoughMs: turnMsMax, prepare: open }, async () => {
    await whileStopped(server, () => {
      for (const [i, { id }] of watches.entries()) clients[Math.floor(i / watchesOfOne)]!.reset(id);
    });
    await untilNoWatch(client);
  });

  t.log(`longest turn ${turnMs} ms`);
  t.true(turnMs <= turnMsMax, `${turnMs} ms`);
});

/**
 * Resolves once the server has handled the resets. Polls seldom, because each answer takes a turn
 * as well.
 */
async function untilNoWatch(client: KubeClient): Promise<void> {
  await until(async () => {
    await sleep(settleMs);
    const { text } = await client.raw('GET', '/metrics');
    return /^strata_watches_open 0$/m.test(text);
  });
}
