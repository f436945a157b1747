/**
 * A child sends random frames to a real server over a real websocket. Finds an object or a shard
 * that gets in although the parent does not accept it, and an object of another pusher that is
 * lost.
 */
import { test } from '../../support/test.js';
import type { ExecutionContext } from 'ava';
import type { Frame, PushedObject } from '../../../src/frames/frame.js';
import type { ShardName } from '../../../src/domain/shard.js';
import type { Slice } from '../../../src/domain/slice.js';
import type { StatusReport } from '../../../src/domain/status.js';
import { seeded, type Random } from '../../support/crash/random.js';
import { shardName } from '../../support/objects.js';
import { claim, openChild } from '../../support/raw-child.js';
import { pushedExport, pushedObject, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aServer, type TestServer } from '../../support/test-server.js';

/**
 * The second rule of `east` names no shards, so it covers amber and birch, which the others name.
 */
const config = `
children:
  east:
    accept:
      - {shards: [amber], clusters: [acme], labels: {tier: gold}}
      - {types: [apiexports.apis.kcp.io], pathPrefix: 'root:a', annotations: {seen: '*'}}
      - {shards: [birch], types: [apiexports.apis.kcp.io], labels: {tier: tin}}
    offer: [{types: ['*']}]
  west: {accept: [{shards: [dune]}]}
`;
const shards = ['amber', 'birch', 'cedar', 'dune', 'made-up'];
const clusters = ['acme', 'beta', 'gamma'];
const paths = [undefined, undefined, 'root:a', 'root:a:team', 'root:ab', 'root:b', 'Root:'];
const types = ['apiexports', 'apiresourceschemas'] as const;

type Item = Readonly<{
  metadata: Readonly<{
    name: string;
    labels?: Readonly<Record<string, string>>;
    annotations?: Readonly<Record<string, string>>;
  }>;
}>;

function pick<Value>(random: Random, values: readonly [Value, ...Value[]] | readonly Value[]): Value {
  return values[random.below(values.length)] as Value;
}

function anObject(random: Random, type: (typeof types)[number]): PushedObject {
  const path = pick(random, paths);
  const name = `${type === 'apiexports' ? '' : 'v.'}object-${random.below(4)}`;
  const metadata = {
    name,
    uid: `uid-of-${name}`,
    labels: random.chance(0.5) ? { tier: pick(random, ['gold', 'tin']) } : {},
    annotations: { ...(random.chance(0.5) ? { seen: 'yes' } : {}), ...(path === undefined ? {} : { 'kcp.io/path': path }) },
  };
  const cluster = pick(random, clusters);
  if (random.chance(0.05)) return { cluster, namespace: '', name, sourceVersion: '1', body: undefined };
  if (type === 'apiexports') return pushedExport(name, { cluster, metadata });
  return pushedObject({ apiVersion: 'apis.kcp.io/v1alpha1', kind: 'APIResourceSchema', metadata }, cluster);
}

/**
 * Judges objects by the policy. It remembers the paths on objects that the policy lets in, by shard
 * and logical cluster, because the server may know any of them.
 */
class Judge {
  readonly #paths = new Map<string, Set<string>>();

  /**
   * Whether the server may have let the object in by now, by the rules as the documentation has
   * them.
   */
  lets(shard: string, cluster: string, type: string, { labels = {}, annotations = {} }: Item['metadata']): boolean {
    const own = annotations['kcp.io/path'];
    const known = own === undefined || own === 'Root:' ? [...(this.#paths.get(`${shard} ${cluster}`) ?? [])] : [own];
    const isWithin = known.some((path) => `${path}:`.startsWith('root:a:'));
    const isIn =
      (shard === 'amber' && cluster === 'acme' && labels['tier'] === 'gold') ||
      (['amber', 'birch'].includes(shard) && type === 'apiexports' && 'seen' in annotations && isWithin) ||
      (shard === 'birch' && type === 'apiexports' && labels['tier'] === 'tin');
    if (isIn && own !== undefined && own !== 'Root:') {
      const paths = this.#paths.get(`${shard} ${cluster}`) ?? new Set<string>();
      this.#paths.set(`${shard} ${cluster}`, paths.add(own));
    }
    return isIn;
  }
}

class RandomChild {
  readonly #server: TestServer;
  readonly #random: Random;
  readonly #judge: Judge;
  #child: RawPusher | undefined;
  #term = 2_000;
  readonly sent = new Map<string, number>();

  constructor(server: TestServer, random: Random, judge: Judge) {
    this.#server = server;
    this.#random = random;
    this.#judge = judge;
  }

  async send(frames: number): Promise<void> {
    this.#child ??= await openChild(this.#server);
    const child = this.#child;
    try {
      for (let i = 0; i < frames; i++) this.#sendOne(child);
      await child.acknowledged(child.numbered((sequence) => ({ kind: 'progress', sequence, position: '1' })));
    } catch {
      // The connection has ended; the next call opens another.
      child.socket.terminate();
      this.#child = undefined;
    }
  }

  #sendOne(child: RawPusher): void {
    const random = this.#random;
    const type = pick(random, types);
    const slice = sliceOf(type, { shard: pick(random, shards) });
    const what = pick(random, [
      'put',
      'put',
      'put',
      'put',
      'put',
      'claim',
      'claim',
      'delete',
      'begin',
      'end',
      'end',
      'digest',
      'report',
      'other',
    ]);
    this.sent.set(what, (this.sent.get(what) ?? 0) + 1);
    switch (what) {
      case 'put':
        return void this.#put(child, slice, type);
      case 'claim':
        this.#term += random.below(3);
        // A child may remove a shard that it may claim, with all its objects. It never removes
        // birch, because the test checks what an end frame does there.
        return claim(
          child,
          slice.shard,
          random.chance(0.05) ? Number.MAX_SAFE_INTEGER : this.#term,
          slice.shard !== 'birch' && random.chance(0.05),
        );
      case 'delete':
        return void child.delete(slice, [`object-${random.below(4)}`, `v.object-${random.below(4)}`], pick(random, clusters));
      case 'begin':
        return void child.begin(slice);
      case 'end':
        return void child.end(slice, random.below(3), pick(random, ['', 'a filter']));
      case 'digest':
        return void child.numbered((sequence) => ({ kind: 'digest', sequence, slice, value: '0' }));
      case 'report':
        return void child.numbered((sequence) => ({
          kind: 'report',
          sequence,
          freshness: [{ slice, connected: true, synced: true, lagMs: 0, whole: true }],
          heartbeat: random.below(4),
          isAll: random.chance(0.5),
          isComplete: random.chance(0.5),
        }));
      default:
        return child.socket.send(this.#anyFrame(slice));
    }
  }

  #put(child: RawPusher, slice: Slice, type: (typeof types)[number]): void {
    const objects = Array.from({ length: 1 + this.#random.below(6) }, () => anObject(this.#random, type));
    for (const { cluster, body } of objects) {
      if (body !== undefined) this.#judge.lets(slice.shard, cluster, type, (JSON.parse(new TextDecoder().decode(body)) as Item).metadata);
    }
    child.put(slice, objects, type === 'apiexports' ? 'v1alpha2' : 'v1alpha1');
  }

  #anyFrame(slice: Slice): Frame {
    const everything = JSON.stringify([{ types: ['*'], shards: ['*'] }]);
    return pick<Frame>(this.#random, [
      { kind: 'policy', up: everything, down: everything },
      { kind: 'resume', position: '7', held: [{ slice, filterHash: 'a filter', syncedTerm: 9 }], isLast: true },
      { kind: 'heartbeat', number: 1 + this.#random.below(3) },
      { kind: 'resync', slice, reason: 'why not' },
      { kind: 'refuse', sequence: 3, reason: 'Forbidden', message: 'no' },
      ...(this.#random.chance(0.9)
        ? []
        : ([
            { kind: 'route', route: ['id-of-east'] },
            { kind: 'status', freshness: [{ slice, connected: true, synced: true, lagMs: 0, whole: true }], withdrawn: [] },
            { kind: 'ack', sequence: 1_000_000, credit: { mutations: 1, bytes: 1 } },
            { kind: 'progress', sequence: 1_000_000, position: 'x' },
          ] as const)),
    ]);
  }
}

async function itemsOf(server: TestServer, shard: ShardName, type: (typeof types)[number]): Promise<readonly Item[]> {
  const version = type === 'apiexports' ? 'v1alpha2' : 'v1alpha1';
  const { text } = await server.client().raw('GET', `/services/cache/shards/${shard}/clusters/*/apis/apis.kcp.io/${version}/${type}`);
  return (JSON.parse(text) as { items: Item[] }).items;
}

async function confirm(t: ExecutionContext, server: TestServer, judge: Judge): Promise<number> {
  const report = JSON.parse((await server.client().raw('GET', '/services/cache/status')).text) as StatusReport;
  const vias = new Map(report.shards.map(({ shard, via }) => [shard as string, via]));
  for (const [shard, via] of vias) if (via?.startsWith('child/') === true) t.true(['amber', 'birch'].includes(shard), shard);
  t.deepEqual(
    [...vias.keys()].filter((shard) => ['dune', 'made-up'].includes(shard)),
    [],
  );
  t.is(vias.get('cedar'), 'local');

  let held = 0;
  for (const shard of ['amber', 'birch'])
    for (const type of types)
      for (const { metadata } of await itemsOf(server, shardName(shard), type)) {
        if (metadata.name.startsWith('of-another')) continue;
        const cluster = metadata.annotations?.['kcp.io/cluster'] ?? '';
        t.true(judge.lets(shard, cluster, type, metadata), `${shard} ${cluster} ${type} ${JSON.stringify(metadata)}`);
        held += 1;
      }
  t.is((await itemsOf(server, shardName('cedar'), 'apiexports')).length, 2);
  t.is((await itemsOf(server, shardName('birch'), 'apiresourceschemas')).length, 1, 'accept covers no schema of birch, so none is removed');
  return held;
}

test('whatever a child sends, its parent stores nothing that it does not accept, and no other pusher loses an object', async (t) => {
  const seed = Number(process.env['CHILD_SEED'] ?? 20_261_122);
  t.log(`seed ${seed}`);
  const random = seeded(seed);
  const server = await aServer(t, { config });
  const cedar = await RawPusher.open(server, { name: 'cedar', term: 1_000 });
  await cedar.sync(sliceOf('apiexports', { shard: 'cedar' }), [pushedExport('object-0'), pushedExport('object-1')]);
  const birch = await RawPusher.open(server, { name: 'birch', term: 1_000 });
  const left = pushedObject({
    apiVersion: 'apis.kcp.io/v1alpha1',
    kind: 'APIResourceSchema',
    metadata: { name: 'of-another.v', uid: 'uid' },
  });
  await birch.sync(sliceOf('apiresourceschemas', { shard: 'birch' }), [left], 'v1alpha1');
  const judge = new Judge();
  const child = new RandomChild(server, random, judge);

  let held = 0;
  for (let round = 0; round < 40; round++) {
    await child.send(60);
    held += await confirm(t, server, judge);
  }

  t.log(`${held} objects looked at; sent ${[...child.sent].map(([what, count]) => `${what} ${count}`).join(', ')}`);
  t.true(held > 100, 'something was let in');
  await cedar.acknowledged(cedar.put(sliceOf('apiexports', { shard: 'cedar' }), [pushedExport('object-1', { spec: { changed: true } })]));
});
