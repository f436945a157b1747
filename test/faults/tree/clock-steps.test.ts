/**
 * The clock of the machine is set an hour back or a day ahead while the server runs. Finds an
 * event, a history or a shard that depends on the wall clock.
 */
import { test } from '../../support/test.js';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { aPath, anApiExport } from '../../support/objects.js';
import { StrataProcess } from '../../support/strata-process.js';
import { until } from '../../support/test-server.js';

const hourMs = 3_600_000;
const everything = aPath({ shard: '*', cluster: '*' });

for (const http2 of [false, true]) {
  for (const [what, stepMs] of [
    ['an hour back', -hourMs],
    ['a day ahead', 24 * hourMs],
  ] as const) {
    test.serial(
      `a clock that is set ${what} stops no event over HTTP/${http2 ? 2 : 1.1}, ages no history and removes no shard`,
      async (t) => {
        t.timeout(60_000);
        const folder = mkdtempSync(join(tmpdir(), 'strata-clock-'));
        const file = join(folder, 'step');
        writeFileSync(file, '0');
        const stepping = new URL('../../support/stepping-clock.js', import.meta.url).href;
        const server = await StrataProcess.start({
          environment: { NODE_OPTIONS: `--import=${stepping}`, STEPPED_CLOCK_FILE: file },
          flags: ['--history-age-max=10m', '--shard-away-max=1h'],
        });
        t.teardown(async () => {
          await server[Symbol.asyncDispose]();
          rmSync(folder, { recursive: true, force: true });
        });
        const client = server.client({ http2 });
        const seenMs = new Map<string, number>();
        const stop = new AbortController();
        t.teardown(() => stop.abort());
        const { metadata } = await client.list(everything);
        const watching = (async () => {
          for await (const { object } of client.watch(everything, {
            query: { resourceVersion: metadata.resourceVersion ?? '' },
            signal: stop.signal,
          }))
            seenMs.set(object.metadata.name ?? '', performance.now());
        })().catch(() => {});
        const create = async (name: string): Promise<number> => {
          const startedMs = performance.now();
          await client.create(aPath(), anApiExport({ name }));
          await until(() => seenMs.has(name), 10_000);
          return (seenMs.get(name) ?? Infinity) - startedMs;
        };
        await create('before');

        writeFileSync(file, String(stepMs));
        await sleep(200);
        const delaysMs: number[] = [];
        for (let i = 0; i < 50; i += 1) delaysMs.push(await create(`after-${i}`));
        // Longer than any periodic task waits; on commit e892933 one ran every 10 s.
        await sleep(11_000);

        t.log(`longest of ${delaysMs.length} delays: ${Math.max(...delaysMs).toFixed()} ms`);
        t.true(Math.max(...delaysMs) < 3_000, `${Math.max(...delaysMs)} ms`);
        const created = await client.get(aPath({ name: 'after-0' }));
        const ageMs = Date.parse(String(created.metadata['creationTimestamp'])) - Date.now();
        t.true(Math.abs(ageMs - stepMs) < 60_000, 'times for people follow the wall clock');
        t.is((await client.list(everything)).items.length, 51);
        const { resourceVersion = '' } = metadata;
        const resumed = client.watch(everything, { query: { resourceVersion, timeoutSeconds: '1' } });
        const events = [];
        for await (const event of resumed) events.push(event.type);
        t.deepEqual(new Set(events), new Set(['ADDED']), 'history is whole');
        t.is(events.length, 51);
        stop.abort();
        await watching;
      },
    );
  }
}
