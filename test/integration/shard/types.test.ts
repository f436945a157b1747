/**
 * An agent that reads a shard and pushes into a real cache. Objects that the shard no longer has
 * must be removed, but nothing may be removed because the agent could not read something.
 */
import { randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { test } from '../../support/test.js';
import { systemClock } from '../../../src/clock.js';
import type { Slice } from '../../../src/domain/slice.js';
import type { SliceStatus, StatusReport } from '../../../src/domain/status.js';
import { connectSocket, defaultConnectOptions } from '../../../src/frames/connect-socket.js';
import { connectPath } from '../../../src/frames/socket-options.js';
import { Sender } from '../../../src/sender/sender.js';
import { defaultSenderBounds } from '../../../src/sender/sender-options.js';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import { ShardAgent } from '../../../src/shard/agent.js';
import { aClusterCachedResource, shardName } from '../../support/objects.js';
import { pushedObject, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { ShardStandIn } from '../../support/shard-stand-in.js';
import { aServer, until, type TestServer } from '../../support/test-server.js';
import { silent } from '../../support/test-store.js';

const cached = 'clustercachedresources.cache.kcp.io';
const instances = 'instances.machines.svm.io';
const exports = 'apiexports.apis.kcp.io';
const hash = 'hash';
const amber = shardName('amber');
/** A type that caches serve and agents do not push. */
const roles: Slice = { shard: amber, resource: { group: 'rbac.authorization.k8s.io', resource: 'roles', identity: '' } };
const machines = sliceOf('instances', { group: 'machines.svm.io', identity: hash });

function declaring(identity = hash): Parameters<ShardStandIn['store']['put']>[2] {
  const object = aClusterCachedResource(identity, { version: 'v1alpha1' });
  return (identity === '' ? { ...object, status: {} } : object) as Parameters<ShardStandIn['store']['put']>[2];
}

class Rig {
  readonly shard: ShardStandIn;
  readonly server: TestServer;
  #stop: (() => Promise<void>) | undefined;

  private constructor(shard: ShardStandIn, server: TestServer) {
    this.shard = shard;
    this.server = server;
  }

  /**
   * Begins with one object of a declared type, on amber and on birch, and a role of amber that no
   * agent pushes.
   */
  static async start(t: ExecutionContext): Promise<Rig> {
    const server = await aServer(t);
    const shard = await ShardStandIn.start();
    const rig = new Rig(shard, server);
    t.teardown(async () => {
      await rig.stopAgent();
      await shard.close();
    });
    shard.store.serve({ group: 'machines.svm.io', version: 'v1alpha1', resource: 'instances', kind: 'Instance', identity: 'unknown' });
    shard.store.put(cached, 'acme', declaring());
    shard.store.put(instances, 'acme', { metadata: { name: 'one' } });
    shard.store.put(exports, 'acme', { metadata: { name: 'widgets' } });

    const birch = await RawPusher.open(server, { name: 'birch' });
    const declared = { ...declaring(), metadata: { ...declaring().metadata, uid: 'of-birch' } };
    await birch.sync(sliceOf('clustercachedresources', { shard: 'birch', group: 'cache.kcp.io' }), [pushedObject(declared)], 'v1alpha1');
    const earlier = await RawPusher.open(server);
    const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'r', namespace: 'n', uid: 'u' } };
    await earlier.sync(roles, [pushedObject(role)], 'v1');
    earlier.socket.terminate();
    t.is(await rig.objects(sliceOf('clustercachedresources', { shard: 'birch', group: 'cache.kcp.io' })), 1);
    return rig;
  }

  startAgent(): void {
    const { server, shard } = this;
    const identity = { ca: server.certificate, certificate: server.master.certificate, key: server.master.key };
    const connect = (url: string, signal: AbortSignal) =>
      connectSocket(url, identity, { clock: systemClock, signal }, defaultConnectOptions);
    const sender = new Sender(
      { turn, clock: systemClock, random: () => 0.01, log: silent, connect },
      {
        ...defaultSenderBounds,
        shard: amber,
        process: randomUUID(),
        takesOver: true,
        urls: [`${server.url}${connectPath}`],
        agent: 'test',
      },
    );
    const parts = { access: shard.access, sink: sender, clock: systemClock, random: () => 0.01, log: silent };
    const agent = new ShardAgent(parts, { shard: amber, types: kcpTypes, systemClusters: [], pushesPaths: false, userAgent: 'test' });
    agent.start();
    const stop = new AbortController();
    const ended = sender.run(stop.signal);
    this.#stop = async () => {
      stop.abort();
      await ended;
      agent.close();
    };
  }

  async stopAgent(): Promise<void> {
    await this.#stop?.();
    this.#stop = undefined;
  }

  /** The number of objects that the cache has in the slice. */
  async objects(slice: Slice): Promise<number> {
    return (await this.slice(slice))?.objects ?? 0;
  }

  /** The status of the slice in the cache; undefined if the cache does not know the slice. */
  async slice({ shard, resource }: Slice): Promise<SliceStatus | undefined> {
    const { shards } = JSON.parse((await this.server.client().raw('GET', '/services/cache/status')).text) as StatusReport;
    const { slices = [] } = shards.find((each) => each.shard === shard) ?? {};
    return slices.find((each) => each.resource === resource.resource && each.identity === resource.identity);
  }

  /**
   * Resolves once an export written during the call is in the cache, and thereby everything sent
   * before it.
   */
  async settled(): Promise<void> {
    const before = await this.objects(sliceOf('apiexports'));
    this.shard.store.put(exports, 'acme', { metadata: { name: `marker-${before}` } });
    await until(async () => (await this.objects(sliceOf('apiexports'))) > before);
  }

  /** Like `settled`, and a while longer, so that a wrong change would have arrived. */
  async quiet(): Promise<void> {
    await this.settled();
    await new Promise((resolve) => setTimeout(resolve, 300));
    await this.settled();
  }
}

test.serial('objects of an earlier agent that this one does not have are removed once all types are known; the rest stays', async (t) => {
  const rig = await Rig.start(t);
  rig.startAgent();

  await until(async () => (await rig.objects(roles)) === 0);
  await until(async () => (await rig.objects(machines)) === 1);
  t.is(await rig.objects(sliceOf('clustercachedresources', { group: 'cache.kcp.io' })), 1);

  await rig.stopAgent();
  rig.shard.store.delete(cached, 'acme', 'instances');
  rig.shard.store.compact();
  rig.startAgent();
  await until(async () => (await rig.objects(machines)) === 0);
  t.true((await rig.objects(sliceOf('apiexports'))) > 0);
});

test.serial('a type whose declaration is deleted while the agent runs leaves the shard, though another shard declares it', async (t) => {
  const rig = await Rig.start(t);
  rig.startAgent();
  await until(async () => (await rig.objects(machines)) === 1);

  rig.shard.store.delete(cached, 'acme', 'instances');

  await until(async () => (await rig.objects(machines)) === 0);
  t.pass();
});

for (const [why, hinder] of Object.entries<(shard: ShardStandIn) => void>({
  'may not read ClusterCachedResources': (shard) => void shard.forbidden.add('clustercachedresources'),
  'finds no ClusterCachedResources served': (shard) => shard.store.hide(cached),
  'reads one that does not declare anything yet': (shard) => void shard.store.put(cached, 'acme', declaring('')),
}))
  test.serial(`an agent that ${why} removes nothing, neither in its first run nor after its restart`, async (t) => {
    const rig = await Rig.start(t);
    hinder(rig.shard);
    rig.startAgent();
    await rig.quiet();
    t.is(await rig.objects(roles), 1);

    await rig.stopAgent();
    rig.startAgent();
    await rig.quiet();
    t.is(await rig.objects(roles), 1);
  });

test.serial('objects of a declared type that the agent may not read after a restart stay in the cache', async (t) => {
  const rig = await Rig.start(t);
  rig.startAgent();
  await until(async () => (await rig.objects(machines)) === 1);
  await rig.stopAgent();

  rig.shard.forbidden.add('instances').add('apiresourceschemas');
  rig.startAgent();
  await until(async () => (await rig.objects(roles)) === 0);
  await rig.quiet();

  t.is(await rig.objects(machines), 1);
});

test.serial(
  'a declaration that loses its identity removes nothing; once all declarations are known again, types without one are removed',
  async (t) => {
    const rig = await Rig.start(t);
    rig.shard.store.put(cached, 'other', { ...declaring(''), metadata: { name: 'later', annotations: {} } });
    rig.startAgent();
    await until(async () => (await rig.objects(machines)) === 1);
    await rig.quiet();
    t.is(await rig.objects(roles), 1);

    rig.shard.store.put(cached, 'acme', declaring(''));
    await rig.quiet();
    t.is(await rig.objects(machines), 1);
    t.is(await rig.objects(roles), 1);

    rig.shard.store.put(cached, 'acme', declaring());
    rig.shard.store.delete(cached, 'other', 'later');
    await until(async () => (await rig.objects(roles)) === 0);
    await rig.quiet();
    t.is(await rig.objects(machines), 1);
  },
);

test.serial('the status shows a type with its source connected soon after its first sync', async (t) => {
  const rig = await Rig.start(t);
  rig.startAgent();
  await until(async () => (await rig.slice(sliceOf('apiexports')))?.syncedIn === 'this-term');
  const syncedMs = performance.now();
  const seen = new Set<boolean | null | undefined>();
  const isConnected = async (): Promise<boolean> => {
    const connected = (await rig.slice(sliceOf('apiexports')))?.sourceConnected;
    seen.add(connected);
    return connected === true;
  };

  await until(isConnected);

  const tookMs = performance.now() - syncedMs;
  t.log(`connected ${Math.round(tookMs)} ms after the sync, and before: ${[...seen].join()}`);
  t.true(tookMs < 8_000, `${tookMs}`);
});
