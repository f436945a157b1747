/**
 * What do 10,000 open watches cost: to open, in memory, without load, and for an update elsewhere?
 *
 * Each watches one logical cluster. They share connections as far as the server allows. Memory is
 * the server's resident size, before and with them.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { httpQuestion } from '../harness/http-question.js';
import { busy, noSlower, processorValue } from '../harness/loaded-values.js';
import { collectionPath, exportsType } from '../harness/mixed-objects.js';
import { readProcessMemory, readProcessorMs } from '../harness/process-usage.js';
import { writesOfExports } from '../harness/watch-load.js';

const watches = 10_000;
const clusters = 10_000;
const streamsOfConnection = 100;
const settleMs = 1_000;
const idleMs = 4_000;
const lateMs = 0;
const msPerSecond = 1_000;
const kib = 1_024;
const perSecond = 100;

export const openWatches = httpQuestion({
  name: 'open-watches',
  family: 'watches',
  asks: 'What do 10,000 open watches cost?',
  protocols: ['HTTP/2'],
  bare: false,
  roundsMax: 1,
  measure: async ({ client, target, http1, objects, bench }) => {
    const { pid } = target;
    const resident = async (): Promise<number> => (pid === undefined ? Number.NaN : (await readProcessMemory(pid)).residentBytes);
    let [before, opened, idle, opening] = [Number.NaN, Number.NaN, Number.NaN, Number.NaN];
    const loaded = await client.run(
      target,
      {
        ...writesOfExports(objects),
        kind: 'watches',
        http1,
        operation: 'elsewhere',
        paths: Array.from({ length: clusters }, (_, i) => collectionPath(exportsType, '%2A', `quiet-${i}`)),
        clients: watches,
        connections: watches / streamsOfConnection,
        perSecond,
        measuredMs: bench.options.measuredMs,
        lateMs,
      },
      async (step) => {
        if (pid === undefined) return;
        if (step === 'opening') {
          before = await resident();
          opening = await readProcessorMs(pid);
        }
        if (step !== 'opened') return;
        opening = (await readProcessorMs(pid)) - opening;
        await sleep(settleMs);
        opened = await resident();
        idle = await bench.loop.quietly(async () => {
          const processorMs = await readProcessorMs(pid);
          await sleep(idleMs);
          return ((await readProcessorMs(pid)) - processorMs) / (idleMs / msPerSecond);
        });
      },
    );
    return {
      values: [
        {
          name: 'watches opened',
          value: watches / (loaded.openMs / msPerSecond),
          unit: '/s',
          better: 'more',
          ...noSlower.more,
          note: busy(loaded),
        },
        { name: 'processor time per opened watch', value: (opening * msPerSecond) / watches, unit: 'µs', better: 'less', ...noSlower.less },
        { name: 'memory of an open watch', value: (opened - before) / watches / kib, unit: 'KiB', better: 'less', ...noSlower.less },
        { name: 'processor time while nothing happens', value: idle, unit: 'ms/s', better: 'less', ...noSlower.less },
        processorValue('update', loaded, loaded.operations),
      ],
    };
  },
});
