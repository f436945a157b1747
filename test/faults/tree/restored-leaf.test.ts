/**
 * A leaf with a plain writer gets an older disk. Its parent has what the leaf lost until the leaf's
 * contents count as a full sync. Then the parent names the lost objects, and the leaf's watches
 * must receive a DELETED for each. kcp waits for that: its informers keep what a relist lacks, so
 * without it an object that nobody changes is never recreated.
 */
import { test } from '../../support/test.js';
import { aPath, anApiExport } from '../../support/objects.js';
import { until } from '../../support/test-server.js';
import { anOnlooker } from './onlooker.js';
import { aProcessTree, type TreeCache } from '../../support/crash/process-tree.js';

/** 30 s of quiet, and the way to the parent and back. */
const namedMsMax = 60_000;

test.serial('watches of a restored leaf receive that lost objects are gone, and writing them again brings them everywhere', async (t) => {
  t.timeout(180_000);
  const tree = await aProcessTree(t);
  const root = await tree.start('root');
  const leaf = await tree.start('leaf', { parent: root });
  const names = async ({ client }: TreeCache): Promise<string> =>
    (await client.list(aPath())).items.map(({ metadata: { name = '' } }) => name).join();
  const create = async (name: string): Promise<void> => void (await leaf.client.create(aPath(), anApiExport({ name })));

  await create('stays');
  await leaf.backUp();
  for (const name of ['lost-1', 'lost-2']) await create(name);
  await until(async () => (await names(root)) === 'lost-1,lost-2,stays');
  await leaf.restore();
  await leaf.process.resume();
  await tree.trustAll();
  t.is(await names(leaf), 'stays');
  const onlooker = await anOnlooker(t, leaf);

  // The writer goes on, and does not know of the loss.
  await create('new');
  await until(async () => (await names(root)).includes('new'));
  t.is(await names(root), 'lost-1,lost-2,new,stays', 'the parent keeps what the leaf has lost');

  const gone = (): readonly string[] => onlooker.seen.filter(({ type }) => type === 'DELETED').map(({ name }) => name);
  await until(() => gone().length === 2, namedMsMax);
  t.deepEqual(gone().toSorted(), ['lost-1', 'lost-2']);

  for (const name of gone()) await create(name);
  await until(async () => (await names(root)) === 'lost-1,lost-2,new,stays');
  t.is(await names(leaf), await names(root));
});
