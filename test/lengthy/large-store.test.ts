/**
 * Over HTTP, the cost of a page, a count or a delete must not grow with the number of unrelated
 * rows.
 *
 * The fastest of several rounds counts, because other work on the machine delays the rest. Each
 * bound is more than three times the measured time, and less than half of the time that commit
 * e892933 took.
 */
import type { ExecutionContext } from 'ava';
import { fastestAnswerMs } from '../support/fastest.js';
import { test } from '../support/test.js';
import type { KubeClient } from '../support/kube-client.js';
import { aPath } from '../support/objects.js';
import { pushedExport, pushedObject } from '../support/raw-pusher.js';
import { StrataProcess } from '../support/strata-process.js';
import { FastFiller } from './fast-filler.js';

const rounds = 7;
const everything = aPath({ shard: '*', cluster: '*' });

async function aServer(t: ExecutionContext): Promise<Readonly<{ server: StrataProcess; client: KubeClient }>> {
  t.timeout(240_000);
  const server = await StrataProcess.start();
  t.teardown(() => server[Symbol.asyncDispose]());
  return { server, client: server.client({ http2: true }) };
}

async function aFiller(t: ExecutionContext, ...of: Parameters<typeof FastFiller.open>): Promise<FastFiller> {
  const filler = await FastFiller.open(...of);
  t.teardown(() => filler.close());
  return filler;
}

const count = <T>(from: number, to: number, make: (i: number) => T): readonly T[] =>
  Array.from({ length: to - from }, (_, i) => make(from + i));
const name = (i: number): string => `n${String(i).padStart(6, '0')}`;

/** Commit e892933 took 241 ms. */
test.serial('the cost of a page after a token depends on its objects, not on 50,000 deletes since the list began', async (t) => {
  const { server, client } = await aServer(t);
  const filler = await aFiller(t, server);
  await filler.put(count(0, 27_000, (i) => pushedExport(name(i))));
  const first = await client.list(`${everything}?limit=500`);
  await filler.delete(count(2_000, 27_000, name));
  await filler.put(count(100_000, 125_000, (i) => pushedExport(name(i))));
  await filler.delete(count(100_000, 125_000, name));

  const target = `${everything}?limit=500&continue=${first.metadata.continue}`;
  const page = await client.list(target);
  const ms = await fastestAnswerMs(() => client.raw('GET', target), rounds);

  t.is(page.items.length, 500);
  t.is(page.items[0]?.metadata.name, name(500));
  t.is(page.metadata.resourceVersion, first.metadata.resourceVersion);
  t.log(`500 objects in ${ms.toFixed(1)} ms`);
  t.true(ms <= 80, `${ms} ms`);
});

/** Commit e892933 took 187 ms. */
test.serial('a page at an old revision costs no more if its object was updated 200,000 times since', async (t) => {
  const { server, client } = await aServer(t);
  const filler = await aFiller(t, server);
  await filler.put(['cold', 'hot'].map((each) => pushedExport(each, { spec: { turn: 0 } })));
  const first = await client.list(`${everything}?limit=1`);
  for (let turn = 1; turn <= 200_000; turn += 10_000)
    await filler.put(count(turn, turn + 10_000, (i) => pushedExport('hot', { spec: { turn: i } })));

  const target = `${everything}?limit=1&continue=${first.metadata.continue}`;
  const page = await client.list(target);
  const ms = await fastestAnswerMs(() => client.raw('GET', target), rounds);

  t.like(page.items, [{ metadata: { name: 'hot' }, spec: { turn: 0 } }]);
  t.log(`one object in ${ms.toFixed(1)} ms`);
  t.true(ms <= 40, `${ms} ms`);
});

/** Commit e892933 took 94 ms. */
test.serial('a page does not wait for a count of what remains', async (t) => {
  const { server, client } = await aServer(t);
  const roles = { group: 'rbac.authorization.k8s.io', resource: 'roles', version: 'v1' };
  const filler = await aFiller(t, server, roles);
  const aRole = (namespace: string, i: number) =>
    pushedObject({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: name(i), namespace, uid: `uid-${namespace}-${i}` },
      rules: [],
    });
  await filler.put([...count(0, 20, (i) => aRole('a', i)), ...count(0, 100_000, (i) => aRole('b', i))]);

  const ofOne = `${aPath({ ...roles, shard: '*', cluster: '*', namespace: 'a' })}?limit=10`;
  const page = await client.list(ofOne);
  const ms = await fastestAnswerMs(() => client.raw('GET', ofOne), rounds);

  t.is(page.items.length, 10);
  t.truthy(page.metadata.continue);
  t.log(`10 of 20 in a namespace, beside 100,000 in another, in ${ms.toFixed(1)} ms`);
  t.true(ms <= 30, `${ms} ms`);
});

/** Commit e892933 took 1,771 ms. */
test.serial('a delete costs the same beside 50,000 objects of its cluster’s namesake on another shard', async (t) => {
  const { server } = await aServer(t);
  const [birch, amber] = [await aFiller(t, server, { shard: 'birch' }), await aFiller(t, server)];
  await birch.put(count(0, 50_000, (i) => pushedExport(name(i))));
  const annotations = { 'kcp.io/path': 'root:a' };
  const ours = count(0, 400, (i) => `z${name(i)}`);
  let shortest = Infinity;
  for (let round = 0; round < 3; round++) {
    await amber.put(ours.map((each) => pushedExport(each, { metadata: { name: each, uid: each, annotations } })));
    const startedMs = performance.now();
    await amber.delete(ours);
    shortest = Math.min(shortest, performance.now() - startedMs);
  }

  t.log(`400 deletes in ${shortest.toFixed(1)} ms`);
  t.true(shortest <= 400, `${shortest} ms`);
});
