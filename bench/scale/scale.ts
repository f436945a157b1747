/**
 * What does a cache of 100,000 or 1,000,000 objects cost?
 *
 * The question measures the time to push, to list, to page, and to read one logical cluster or one
 * object by its canonical path. It also measures the time until the server is ready after a
 * restart, memory, and disk.
 *
 * It starts its own server. One shard pushes, with a hundred objects of 0.5 to 200 kB in each
 * logical cluster. The client makes the objects during the push, because a million of them do not
 * fit into memory. The note says how busy the client is.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { StrataProcess } from '../../test/support/strata-process.js';
import type { CacheTarget } from '../harness/cache-target.js';
import type { GoClient, Loaded } from '../harness/go-client.js';
import { collectionPath, exportsType, pushedMixedObject } from '../harness/mixed-objects.js';
import { readProcessMemory, readProcessorMs } from '../harness/process-usage.js';
import { pushTargetOf } from '../harness/push-target.js';
import { check, type Bench, type Check, type Figure, type Question } from '../harness/question.js';
import { formatShare } from '../harness/report.js';

const shard = 'amber';
const objectsOfCluster = 100;
const pageLimit = 500;
const sampledPaths = 1_000;
const readyMsMax = 300_000;
const msPerSecond = 1_000;
const mib = 1_024 ** 2;

export const hundredThousand = scaleQuestion(100_000, 'hundred-thousand');
export const million: Question = { ...scaleQuestion(1_000_000, 'million'), isLong: true };

function scaleQuestion(objects: number, name: string): Question {
  return {
    name,
    family: 'scale',
    asks: `What does a cache of ${objects.toLocaleString('en')} objects take, in time, memory and disk?`,
    needs: ['http', 'push'],
    ask: async (bench) => {
      await using server = await StrataProcess.start();
      const pushed = await push(bench, server, objects);
      const read = await readBack(bench, server, objects);
      const diskBytes = await sizeOf(server.dataFolder);
      const resident = await readProcessMemory(server.pid);
      await server.stop();
      const startedMs = performance.now();
      await server.resume(readyMsMax);
      const readyMs = performance.now() - startedMs;
      return {
        figures: [
          ...pushed,
          ...read.figures,
          { name: 'ready again', value: readyMs / msPerSecond, unit: 's', better: 'less' },
          {
            name: 'resident',
            value: resident.residentBytes / mib,
            unit: 'MiB',
            better: 'less',
            note: `peak ${(resident.peakBytes / mib).toFixed(0)} MiB`,
          },
          { name: 'disk', value: diskBytes / mib, unit: 'MiB', better: 'less' },
        ],
        checks: read.checks,
      };
    },
  };
}

async function push({ load, progress }: Bench, server: StrataProcess, objects: number): Promise<readonly Figure[]> {
  progress.show(`pushing ${objects.toLocaleString('en')} objects`);
  const before = await readProcessorMs(server.pid);
  const clusters = Math.ceil(objects / objectsOfCluster);
  const { syncMs } = await load.ask('pushMany', { target: await pushTargetOf(server), shard, objects, clusters });
  const processorMs = (await readProcessorMs(server.pid)) - before;
  return [
    { name: 'push', value: objects / (syncMs / msPerSecond), unit: '/s', better: 'more', note: `client ${formatShare(load.busy)} busy` },
    { name: 'processor time per pushed object', value: (processorMs * msPerSecond) / objects, unit: 'µs', better: 'less' },
  ];
}

async function readBack(
  { http, options: { measuredMs }, progress }: Bench,
  server: StrataProcess,
  objects: number,
): Promise<Readonly<{ figures: readonly Figure[]; checks: readonly Check[] }>> {
  if (http === undefined) return { figures: [], checks: [] };
  const target: CacheTarget = {
    role: 'measured',
    url: server.url,
    caFile: server.certificateFile,
    certFile: server.master.certificateFile,
    keyFile: server.master.keyFile,
    pid: server.pid,
  };
  const clusters = Math.ceil(objects / objectsOfCluster);
  const step = Math.max(1, Math.floor(objects / sampledPaths));
  const sampled = Array.from({ length: Math.min(sampledPaths, objects) }, (_, i) =>
    pushedMixedObject(shard, (i * step) % objects, clusters),
  );
  const ask = async (
    what: string,
    paths: readonly string[],
    more: Readonly<{ measuredMs: number; pageLimit?: number }>,
  ): Promise<Loaded> => {
    progress.show(`${what} of ${objects.toLocaleString('en')}`);
    return await run(http.client, target, paths, more);
  };
  // The time is so short that there is only one list.
  const list = await ask('list', [collectionPath(exportsType)], { measuredMs: 1 });
  const page = await ask('pages', [collectionPath(exportsType)], { measuredMs, pageLimit });
  const clusterPaths = sampled.map(({ cluster }) => collectionPath(exportsType, '%2A', cluster));
  const cluster = await ask('logical clusters', clusterPaths, { measuredMs });
  const objectPaths = sampled.map((one) => `${collectionPath(exportsType, '%2A', `root:bench:${one.cluster}`)}/${one.name}`);
  const byPath = await ask('objects by path', objectPaths, { measuredMs });
  return {
    figures: [
      { name: 'list', value: list.elapsedMs / msPerSecond, unit: 's', better: 'less', note: `${(list.bytes / mib).toFixed(0)} MiB` },
      { name: 'processor time per listed object', value: (list.processorMs * msPerSecond) / objects, unit: 'µs', better: 'less' },
      ...each('page of 500', page),
      ...each('list of a cluster', cluster),
      ...each('get by canonical path', byPath),
    ],
    checks: [
      check(`every one of ${objects} objects is listed once`, list.objects === objects, `${list.objects} are`),
      check(
        `a canonical path leads to its object among ${objects}`,
        byPath.objects === byPath.operations,
        `${byPath.objects} of ${byPath.operations}`,
      ),
    ],
  };
}

async function run(
  client: GoClient,
  target: CacheTarget,
  paths: readonly string[],
  more: Readonly<{ measuredMs: number; pageLimit?: number }>,
): Promise<Loaded> {
  const operation = more.pageLimit === undefined ? 'list' : 'page';
  return await client.run(target, { kind: 'requests', operation, http1: false, workers: 1, paths, ...more });
}

function each(name: string, { elapsedMs, operations, processorMs }: Loaded): readonly Figure[] {
  return [
    { name, value: elapsedMs / operations, unit: 'ms', better: 'less' },
    { name: `processor time per ${name}`, value: (processorMs * msPerSecond) / operations, unit: 'µs', better: 'less' },
  ];
}

async function sizeOf(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true });
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}
