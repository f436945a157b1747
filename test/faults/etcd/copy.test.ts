/** `strata copy` from SQLite into a real etcd and back, as an operator calls it. */
import { test } from '../../support/test.js';
import { runProgram } from '../../clients/installed.js';
import { aKey, aPut, aScope, shardName } from '../../support/objects.js';
import { builtMain } from '../../support/project.js';
import { aClaim, aClear, aFullSync, aMeet, anUpsert, mustPush } from '../../support/pushes.js';
import { openTestStore, storeDirectory, write } from '../../support/test-store.js';
import { byText } from '../../contract/comparable.js';
import { list } from '../../contract/read-all.js';
import type { Store } from '../../../src/domain/store-port.js';
import { opened } from './open-stores.js';
import { members } from './with-members.js';

async function contents(store: Store): Promise<unknown> {
  const objects = await list(store, aScope());
  return {
    objects: objects.map(({ key, body }) => `${key.shard}/${key.name} ${Buffer.from(body.bytes).toString()}`).toSorted(),
    shards: [...store.state.shards].map(({ shard, removed, plain, via }) => ({ shard, removed, plain, via })).toSorted(byText),
    slices: [...store.state.slices].map(({ slice, digest }) => ({ slice, digest })).toSorted(byText),
    paths: await store.paths.pathsOf([aKey({ shard: 'amber' }), aKey({ shard: 'birch' })]),
  };
}

test('a copy into etcd and back keeps objects, holders of shards and removals, and leaves out what came over links', async (t) => {
  const etcd = await members(t);
  if (etcd === undefined) return;
  await using _ = etcd;
  const [directory, back] = [storeDirectory(t), storeDirectory(t)];
  const filled = await openTestStore(directory);
  const lane = filled.writer.lane();
  const many = Array.from({ length: 300 }, (__, i) => anUpsert({ name: `n${i}` }, { spec: i, path: 'root:acme' }));
  await mustPush(lane, [aClaim(), ...aFullSync({}, many)]);
  for (let i = 0; i < 200; i += 1) await write(filled, aPut({ shard: 'birch', name: `p${i}` }, 'absent', { path: 'root:bold' }));
  await mustPush(lane, [aClaim('cedar'), aClear('cedar')]);
  const expected = await contents(filled);
  await mustPush(lane, [
    aMeet('other'),
    aClaim({ shard: 'dogwood', via: 'parent', origin: 'far' }),
    anUpsert({ shard: 'dogwood' }, {}, 'parent'),
  ]);
  await filled.close();

  const copy = (...words: readonly string[]) => runProgram(process.execPath, [builtMain(), 'copy', ...words], { timeoutMs: 60_000 });
  const name = `etcd:${etcd.endpoints.join(',')}`;
  const there = await copy(`--from=sqlite:${directory}`, `--to=${name}`);
  t.is(there.code, 0, there.stderr);
  t.regex(
    there.stdout,
    /Copied 500 objects of 3 shards, .*digests are the same\.\nNot copied: 1 objects from links or of removed shards\.\n$/,
  );
  const store = await opened(t, etcd);
  t.deepEqual(await contents(store), expected);
  t.is([...store.state.shards].find(({ shard }) => shard === shardName('amber'))?.process, 'process-1000');

  const busy = await copy(`--from=${name}`, `--to=sqlite:${back}`);
  t.is(busy.code, 1);
  t.regex(busy.stderr, /servers run on/);
  await store.close();
  const full = await copy(`--from=sqlite:${directory}`, `--to=${name}`);
  t.is(full.code, 1);
  t.regex(full.stderr, /the store to copy to is not empty/);

  const returned = await copy(`--from=${name}`, `--to=sqlite:${back}`);
  t.is(returned.code, 0, returned.stderr);
  const again = await openTestStore(back);
  t.deepEqual(await contents(again), expected);
  await again.close();
  t.is((await copy(`--from=${name}`, `--to=${name}`)).code, 2);
  t.is((await copy('--from=nonsense', `--to=${name}`)).code, 2);
});
