/**
 * Kills a store in the middle of commits and compactions (F2). Finds a revision or a compacted
 * revision that falls (etcd #17780). Also finds a live object that loses its row, and a gap in the
 * history above the compacted revision.
 */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { test } from '../../support/test.js';
import { changesBehind, list, textOf } from '../../contract/read-all.js';
import { SqliteEngine } from '../../support/store/sqlite-engine.js';
import { aScope } from '../../support/objects.js';
import { storeDirectory } from '../../support/test-store.js';
import type { Reported } from './churn.js';
import { seeded } from '../../support/crash/random.js';
import { spawn } from '../../support/children.js';

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000_000);
const kills = Number(process.env['TEST_KILLS'] ?? 20);

/** Runs churn.ts for a while, kills it, and returns what it printed. */
async function churn(directory: string, turn: number, forMs: number): Promise<readonly Reported[]> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./churn.js', import.meta.url)), directory, String(turn)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  const exited = once(child, 'close');
  await Promise.race([once(child.stdout, 'data'), exited]);
  await sleep(forMs);
  child.kill('SIGKILL');
  await exited;
  // The kill may have cut the last line.
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Reported);
}

test('a store that is killed while it compacts is whole, and goes on compacting', async (t) => {
  t.log(`TEST_SEED=${seed}`);
  const random = seeded(seed);
  const directory = storeDirectory(t);
  let revision = 0;
  let compacted = 0;
  let last: Readonly<{ text: string; revision: number }> | undefined;

  for (let turn = 0; turn < kills; turn++) {
    const received = await churn(directory, seed + turn, random.below(150));
    const acknowledged = received.filter((each) => each.revision !== undefined);
    revision = Math.max(revision, ...acknowledged.map((each) => each.revision ?? 0));
    compacted = Math.max(compacted, ...received.map((each) => each.compacted ?? 0));

    const teardowns: (() => unknown)[] = [];
    const engine = await SqliteEngine.start({ teardown: (run) => teardowns.push(run) }, {}, { directory });
    const { store } = engine;
    t.true(store.revisions.published >= revision, `turn ${turn}: ${store.revisions.published} published, ${revision} acknowledged`);
    t.true(store.revisions.compacted >= compacted, `turn ${turn}: compacted ${store.revisions.compacted}, reported ${compacted}`);
    if (last !== undefined && last.revision >= store.revisions.compacted)
      t.deepEqual(store.revisions.locate(last.text), { kind: 'ours', revision: last.revision });
    last = { text: store.revisions.format(store.revisions.published), revision: store.revisions.published };

    const now = (await list(store, aScope())).map(textOf);
    const replayed = new Map(
      (await list(store, aScope(), { revision: store.revisions.compacted })).map((object) => [
        `${object.key.shard}/${object.key.name}`,
        textOf(object),
      ]),
    );
    for (const change of await changesBehind(store, aScope(), store.revisions.compacted)) {
      const at = `${change.key.shard}/${change.key.name}`;
      t.is(
        change.previous() === undefined ? undefined : textOf(change.previous()!),
        replayed.get(at),
        `turn ${turn}: the row that ${change.revision} replaced`,
      );
      if (change.kind === 'delete') replayed.delete(at);
      else replayed.set(at, textOf(change.object));
    }
    t.deepEqual([...replayed.values()].toSorted(), now.toSorted(), `turn ${turn}`);
    ({ published: revision, compacted } = store.revisions);
    await store.close();
  }

  t.log(`${kills} kills, ${revision} changes, compacted ${compacted}`);
  t.true(compacted > 0);
});
