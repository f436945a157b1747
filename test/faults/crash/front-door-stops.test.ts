/**
 * Watches through the front door while each process is stopped by the signal that stops it in
 * production: the watched server, the cache, the front door, and all of them at once. Finds a watch
 * that neither ends nor goes on, and one that lacks an object that was written before its end.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { FrontDoorProcess } from '../../e2e/front-door-process.js';
import { aShard } from '../../support/proxy/a-front-door.js';
import { KubeClient } from '../../support/kube-client.js';
import { syncPaths } from '../../support/path-pusher.js';
import { RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { isForeign, StrataProcess } from '../../support/strata-process.js';
import { until } from '../../support/test-server.js';

const types = '{types: [logicalclusters.paths.strata, workspaces.paths.strata]}';
const config = `children: {'*': {accept: [{shards: ['*']}], offer: [{types: ['*']}, ${types}]}}`;
/**
 * A watch must end within this time under any load; servers and the front door have 10 s of grace.
 */
const endMsMax = 8_000;

type Installation = Readonly<{
  door: FrontDoorProcess;
  cache: StrataProcess;
  shard: StrataProcess;
  client: (http2: boolean) => KubeClient;
}>;

/** The watched server is a cache that stands in for a shard, below the path in its Shard's URL. */
async function anInstallation(t: ExecutionContext): Promise<Installation> {
  const cache = await StrataProcess.start({ config });
  t.teardown(() => cache[Symbol.asyncDispose]());
  const { authority } = cache;
  const shard = await StrataProcess.start({ authority });
  t.teardown(() => shard[Symbol.asyncDispose]());
  const pusher = await RawPusher.open(cache, { name: 'root' });
  await syncPaths(pusher, 'root', {
    clusters: { root: { path: 'root', parentless: true }, org1: { path: 'root:org' } },
    workspaces: { 'root org': { cluster: 'org1', shard: 'root' } },
  });
  const url = `${shard.url}/services/cache/shards/amber`;
  await pusher.syncWhole(sliceOf('shards', { group: 'core.kcp.io', shard: 'root' }), [aShard('root', url)], 'v1alpha1');
  pusher.socket.terminate();

  const folder = await mkdtemp(join(tmpdir(), 'strata-door-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const mapping = join(folder, 'mapping.yaml');
  const shown = `backend_server_ca: ${shard.certificateFile}, proxy_client_cert: ${cache.master.certificateFile}, proxy_client_key: ${cache.master.keyFile}`;
  await writeFile(mapping, `- {path: /clusters/, backend: "${shard.url}", ${shown}}\n`);
  const serving = authority.issue({ user: 'door', groups: [], hosts: ['127.0.0.1'], usages: ['server'] });
  const files = { mapping, clientCa: authority.certificateFile, certificate: serving.certificateFile, key: serving.keyFile };
  const door = await FrontDoorProcess.start(cache, files);
  t.teardown(() => door[Symbol.asyncDispose]());
  const { certificate, key } = cache.master;
  const client = (http2: boolean): KubeClient => {
    const made = new KubeClient({ url: door.url, certificate, key, http2 });
    t.teardown(() => made.close());
    return made;
  };
  return { door, cache, shard, client };
}

const exports = '/clusters/root:org/apis/apis.kcp.io/v1alpha2/apiexports';

/** Opens a watch. `ended` resolves with how its client saw it end. */
async function aWatch(client: KubeClient): Promise<Readonly<{ names: string[]; ended: Promise<'clean' | 'error'> }>> {
  const names: string[] = [];
  let isOpen = false;
  const ended = (async () => {
    for await (const { object } of client.watch(exports, { opened: () => (isOpen = true) })) names.push(object.metadata.name ?? '');
  })().then(
    () => 'clean' as const,
    () => 'error' as const,
  );
  await until(() => isOpen);
  return { names, ended };
}

async function within<T>(answer: Promise<T>, ms: number): Promise<T | 'silence'> {
  let late: NodeJS.Timeout | undefined;
  const silence = new Promise<'silence'>((resolve) => (late = setTimeout(() => resolve('silence'), ms)));
  return Promise.race([answer, silence]).finally(() => clearTimeout(late));
}

test.serial(
  'a watch through the front door ends in time when the server behind it, the front door or all stop, and can be opened again',
  async (t) => {
    if (isForeign) {
      t.log('SKIPPED: the server is not ours');
      t.pass();
      return;
    }
    t.timeout(8 * 60_000);
    const { door, cache, shard, client } = await anInstallation(t);
    let made = 0;
    /** Resolves once watches over HTTP/1.1 and HTTP/2 are open and have seen a new object. */
    const watched = async () => {
      await until(
        async () =>
          (
            await client(true)
              .raw('GET', exports)
              .catch(() => undefined)
          )?.status === 200,
        60_000,
      );
      const watches = await Promise.all([false, true].map((http2) => aWatch(client(http2))));
      const name = `one-${(made += 1)}`;
      await shard.client().raw('POST', `/services/cache/shards/amber/clusters/org1/apis/apis.kcp.io/v1alpha2/apiexports`, {
        body: { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name } },
      });
      await until(() => watches.every(({ names }) => names.includes(name)));
      return watches;
    };
    const ends = (watches: Awaited<ReturnType<typeof watched>>, withinMs = endMsMax) =>
      Promise.all(watches.map(({ ended }) => within(ended, withinMs)));

    let watches = await watched();
    await Promise.all([shard.stop(), ends(watches).then((how) => t.deepEqual(how, ['clean', 'clean'], 'the watched server stops'))]);
    await shard.resume();

    watches = await watched();
    await cache.stop();
    const name = `one-${(made += 1)}`;
    await shard.client().raw('POST', `/services/cache/shards/amber/clusters/org1/apis/apis.kcp.io/v1alpha2/apiexports`, {
      body: { apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata: { name } },
    });
    await until(() => watches.every(({ names }) => names.includes(name)));
    t.pass('the watches do not depend on the cache');

    const stopped = door.stop();
    t.deepEqual(await ends(watches), ['clean', 'clean'], 'the front door stops');
    await stopped;
    await door.resume();
    await cache.resume();

    watches = await watched();
    const all = Promise.all([shard.stop(), cache.stop(), door.stop()]);
    const how = await ends(watches);
    t.log(`all of it stops: ${how.join(', ')}`);
    t.false(how.includes('silence'));
    await all;
    await Promise.all([shard.resume(), cache.resume()]);
    await door.resume();
    watches = await watched();

    // A killed server sends nothing more; the kernel resets its connections.
    await shard.kill();
    t.false((await ends(watches, 30_000)).includes('silence'), 'the watched server is killed');
  },
);
