/**
 * A server starts on an older state of its disk, in each way that happens (F27). Finds a lost
 * resourceVersion that is taken for an existing one, at once or after as many new writes. A pusher
 * whose acknowledged changes are lost must sync everything; one that lost none must go on.
 */
import { copyFile, cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { freeze, thaw } from '../../support/freeze.js';
import type { KubeClient, WatchEvent } from '../../support/kube-client.js';
import { StrataProcess } from '../../support/strata-process.js';
import { until } from '../../support/test-server.js';
import { aModelShard, modelTypes } from './model-shard.js';

const collection = (shard: string): string =>
  `/services/cache/shards/${shard}/clusters/${shard === '*' ? '*' : 'acme'}/apis/${modelTypes[0].group}/${modelTypes[0].version}/${modelTypes[0].resource}`;
const pushed = 20;
const written = 5;

type Ways = Readonly<Record<string, Readonly<{ take: (disk: Disk) => Promise<void>; restore: (disk: Disk) => Promise<void> }>>>;

/** The data folder of a server, and where its copies lie. */
class Disk {
  readonly server: StrataProcess;

  constructor(server: StrataProcess) {
    this.server = server;
  }

  get data(): string {
    return join(this.server.dataFolder, 'data');
  }

  file(suffix = ''): string {
    return join(this.data, `strata.db${suffix}`);
  }

  copy(suffix = ''): string {
    return join(this.server.folder, `copy${suffix}`);
  }

  async forget(...suffixes: readonly string[]): Promise<void> {
    for (const suffix of suffixes) await rm(this.file(suffix), { force: true });
  }
}

const ways: Ways = {
  'the file alone': {
    take: async (disk) => {
      await disk.server.stop();
      await copyFile(disk.file(), disk.copy());
      await disk.server.resume();
    },
    restore: async (disk) => {
      await disk.forget('-wal', '-shm');
      await copyFile(disk.copy(), disk.file());
    },
  },
  'the file and its log': {
    take: async (disk) => {
      await disk.server.kill();
      for (const suffix of ['', '-wal']) await copyFile(disk.file(suffix), disk.copy(suffix));
      await disk.server.resume();
    },
    restore: async (disk) => {
      await disk.forget('-shm');
      for (const suffix of ['', '-wal']) await copyFile(disk.copy(suffix), disk.file(suffix));
    },
  },
  'a snapshot of the running folder': {
    take: async (disk) => {
      // Frozen, so that every file is copied as of one moment, as a snapshot of a volume has it.
      await freeze(disk.server.pid);
      await cp(disk.data, disk.copy('-folder'), { recursive: true });
      thaw(disk.server.pid);
    },
    restore: async (disk) => {
      await rm(disk.data, { recursive: true, force: true });
      await cp(disk.copy('-folder'), disk.data, { recursive: true });
    },
  },
};

for (const [way, { take, restore }] of Object.entries(ways)) {
  test.serial(`no resourceVersion that a rollback lost is taken for an existing one, and pushers sync again: ${way}`, async (t) => {
    await using server = await StrataProcess.start();
    const disk = new Disk(server);
    const client = server.client();
    const shard = aModelShard(t, 'amber');
    for (let i = 0; i < pushed; i += 1) shard.put(`pushed-${i}`);
    const { sender } = shard.push({ process: server });
    await until(async () => (await truthOf(client, 'amber')).length === pushed);
    const first = await write(client, 'kept');

    await take(disk);
    await until(async () => sender.state.connection.kind === 'connected');
    const opened = shard.syncs;
    shard.delete('pushed-1');
    shard.put('pushed-2', { turn: 9 });
    shard.put('pushed-new');
    const lost = await write(client, 'lost');
    await until(async () => (await truthOf(client, 'amber')).includes('pushed-new 0'));
    const last = (await client.list(collection('*'))).metadata.resourceVersion!;

    await server.kill();
    await restore(disk);
    await server.resume();

    for (const resourceVersion of [...lost, last]) await isForeign(t, client, resourceVersion);
    t.deepEqual(await seenBehind(client, first[0]!, first.slice(1)), first.slice(1), 'a version from before the rollback resumes');
    const again = await write(client, 'again');
    for (let more = 0; more < 3; more += 1) again.push(...(await write(client, `more-${more}`)));
    for (const resourceVersion of [...lost, last]) await isForeign(t, client, resourceVersion);
    t.is(new Set([...first, ...lost, ...again]).size, first.length + lost.length + again.length, 'no version is given twice');
    await until(async () => (await truthOf(client, 'amber')).join() === shard.truth.join());
    t.true(shard.syncs > opened, 'the pusher synced again');
    t.deepEqual(await truthOf(client, 'birch', 'lost'), []);
  });
}

test.serial('after a kill or a stop, pushers go on after what was acknowledged, and watches after what they saw', async (t) => {
  await using server = await StrataProcess.start();
  const client = server.client();
  const shard = aModelShard(t, 'amber');
  for (let i = 0; i < pushed; i += 1) shard.put(`pushed-${i}`);
  const { sender } = shard.push({ process: server });
  await until(async () => (await truthOf(client, 'amber')).length === pushed);
  const versions = await write(client, 'first');
  const { syncs } = shard;

  for (const how of ['SIGKILL', 'SIGTERM', 'SIGKILL'] as const) {
    await server.restart(how);
    await until(async () => sender.state.connection.kind === 'connected');
    shard.put('pushed-1', { turn: shard.find(modelTypes[0], 'pushed-1')!.turn + 1 });
    await until(async () => (await truthOf(client, 'amber')).join() === shard.truth.join());
    versions.push(...(await write(client, `behind-${how.toLowerCase()}-${versions.length}`)));
    t.deepEqual(await seenBehind(client, versions[0]!, versions.slice(1)), versions.slice(1), how);
  }

  t.is(shard.syncs, syncs, 'nothing was resynced');
  t.deepEqual(
    versions.map(BigInt).toSorted((a, b) => (a < b ? -1 : 1)),
    versions.map(BigInt),
    'versions rise across lives',
  );
});

/** Creates some objects of the shard birch; resolves with their resourceVersions. */
async function write(client: KubeClient, name: string): Promise<string[]> {
  const versions: string[] = [];
  for (let i = 0; i < written; i += 1) {
    const created = await client.create(collection('birch'), {
      apiVersion: `${modelTypes[0].group}/${modelTypes[0].version}`,
      kind: modelTypes[0].kind,
      metadata: { name: `${name}-${i}` },
    });
    versions.push(created.metadata.resourceVersion!);
  }
  return versions;
}

/** Names and turns of the objects that the cache holds of a shard, sorted. */
async function truthOf(client: KubeClient, shard: string, prefix = ''): Promise<readonly string[]> {
  const { items } = await client.list(collection(shard));
  return items
    .map(({ metadata }) => `${metadata.name} ${metadata.labels?.['turn'] ?? ''}`)
    .filter((text) => text.startsWith(prefix))
    .toSorted();
}

/**
 * Asserts that the server does not take this resourceVersion for its own. A watch from it gets 410.
 * A list gets 504 if the version is above the store's, else an exact one gets 410 and another one
 * 200.
 */
async function isForeign(t: ExecutionContext, client: KubeClient, resourceVersion: string): Promise<void> {
  for (const allowWatchBookmarks of ['true', 'false']) {
    const events: WatchEvent[] = [];
    for await (const event of client.watch(collection('*'), { query: { resourceVersion, allowWatchBookmarks, timeoutSeconds: '5' } }))
      events.push(event);
    t.like(events, [{ type: 'ERROR', object: { code: 410, reason: 'Expired' } }], `a watch from ${resourceVersion}`);
    t.is(events.length, 1);
  }
  const now = async (): Promise<bigint> => BigInt((await client.list(collection('*'))).metadata.resourceVersion!);
  const statusOf = async (query: string): Promise<number> => (await client.raw('GET', `${collection('*')}?${query}`)).status;
  const before = await now();
  const atLeast = await statusOf(`resourceVersion=${resourceVersion}`);
  const exactly = await statusOf(`resourceVersion=${resourceVersion}&resourceVersionMatch=Exact`);
  const after = await now();
  // The pusher's sync may meanwhile raise the store past a version that was above it.
  const isAbove = BigInt(resourceVersion) > after ? [true] : BigInt(resourceVersion) > before ? [true, false] : [false];
  t.true(
    isAbove.some((above) => atLeast === (above ? 504 : 200)),
    `at least ${resourceVersion}: ${atLeast}`,
  );
  t.true(
    isAbove.some((above) => exactly === (above ? 504 : 410)),
    `exactly ${resourceVersion}: ${exactly}`,
  );
}

/** The resourceVersions of birch's events after `resourceVersion`, at most as many as expected. */
async function seenBehind(client: KubeClient, resourceVersion: string, expected: readonly string[]): Promise<readonly string[]> {
  const seen: string[] = [];
  const abort = new AbortController();
  for await (const { type, object } of client.watch(collection('birch'), {
    query: { resourceVersion, timeoutSeconds: '5' },
    signal: abort.signal,
  })) {
    seen.push(type === 'ADDED' ? object.metadata.resourceVersion! : `${type} ${JSON.stringify(object)}`);
    if (seen.length >= expected.length) break;
  }
  abort.abort();
  return seen;
}
