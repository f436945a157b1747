/**
 * Everything that a run needs: the measured server, the bare one, the other one of `--against`, and
 * the processes that make the load. All targets over HTTP get the same objects before the first
 * question. Those of the other server are deleted at the end.
 */
import { join, resolve } from 'node:path';
import { StrataProcess } from '../../test/support/strata-process.js';
import { BareProcess } from './bare-process.js';
import type { CacheTarget } from './cache-target.js';
import type { CleanUp } from './clean-up.js';
import { GoClient } from './go-client.js';
import { LoadProcess } from './load-process.js';
import { LoopSampler } from './loop-sampler.js';
import { writeMixedObjects } from './mixed-objects.js';
import { createdObjects, parseCount, UsageError, type BenchOptions, type Flags } from './options.js';
import type { Progress } from './progress.js';
import { targetOf } from './push-target.js';
import type { Bench, HttpBench } from './question.js';

const fillingWorkers = 16;

export async function openSurroundings(
  {
    flags,
    options,
    folder,
    progress,
    asksOverHttp,
  }: Readonly<{ flags: Flags; options: BenchOptions; folder: string; progress: Progress; asksOverHttp: boolean }>,
  cleanUp: CleanUp,
): Promise<Omit<Bench, 'spans'>> {
  const environment = flags.profile === undefined ? {} : profileEnvironment(resolve(flags.profile));
  const server = cleanUp.use(await StrataProcess.start({ flags: flags.flag, environment }));
  const target = targetOf(server);
  const bare = cleanUp.use(await BareProcess.start(target));
  const load = cleanUp.use(new LoadProcess());
  const secondLoad = cleanUp.use(new LoadProcess());
  const loop = cleanUp.use(new LoopSampler(server.client()));
  const targets: readonly CacheTarget[] = [
    {
      role: 'measured',
      url: server.url,
      caFile: server.certificateFile,
      certFile: server.master.certificateFile,
      keyFile: server.master.keyFile,
      pid: server.pid,
    },
    ...otherTarget(flags),
    {
      role: 'bare',
      url: `https://127.0.0.1:${bare.target.port}`,
      certFile: server.master.certificateFile,
      keyFile: server.master.keyFile,
      pid: bare.pid,
    },
  ];
  const http = asksOverHttp ? await openHttp({ targets, options, folder, progress }, cleanUp) : undefined;
  const isInEtcd = flags.flag?.some((flag) => flag.startsWith('--etcd-servers=')) ?? false;
  const startAnother = isInEtcd ? () => StrataProcess.start({ flags: flags.flag, authority: server.authority }) : undefined;
  return { server, startAnother, target, bare, load, secondLoad, loop, folder, options, progress, http };
}

async function openHttp(
  {
    targets,
    options: { objects },
    folder,
    progress,
  }: Readonly<{ targets: readonly CacheTarget[]; options: BenchOptions; folder: string; progress: Progress }>,
  cleanUp: CleanUp,
): Promise<HttpBench | undefined> {
  const objectsFile = join(folder, 'objects.tsv');
  const client = await GoClient.build(folder, objectsFile);
  if (client === undefined) return undefined;
  await writeMixedObjects(objectsFile, objects + createdObjects);
  const range = { kind: 'requests', http1: false, from: 0, to: objects, workers: fillingWorkers } as const;
  for (const target of targets) {
    progress.say(`filling ${target.role} with ${objects.toLocaleString('en')} objects`);
    if (target.role === 'against')
      cleanUp.defer(async () => void (await client.run(target, { ...range, to: objects + createdObjects, operation: 'delete' })));
    await client.run(target, { ...range, operation: 'create' });
  }
  return { client, targets };
}

function otherTarget(flags: Flags): readonly CacheTarget[] {
  const { against, ca, cert, key, token, 'against-pid': pid } = flags;
  if (against === undefined) return [];
  if (!URL.canParse(against) || new URL(against).pathname !== '/') throw new UsageError('--against must be a URL without a path');
  if ((cert === undefined) !== (key === undefined)) throw new UsageError('--cert and --key go together');
  return [
    {
      role: 'against',
      url: against.replace(/\/$/, ''),
      ...(ca !== undefined && { caFile: resolve(ca) }),
      ...(cert !== undefined && key !== undefined && { certFile: resolve(cert), keyFile: resolve(key) }),
      ...(token !== undefined && { token }),
      ...(pid !== undefined && { pid: parseCount('against-pid', pid) }),
    },
  ];
}

function profileEnvironment(folder: string): Record<string, string> {
  return { NODE_OPTIONS: `--import=${new URL('./profile.js', import.meta.url).href}`, BENCH_PROFILE: folder };
}
