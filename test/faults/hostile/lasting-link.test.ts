/**
 * A link that lasts. Finds a parent that ends it because of all that the child has reported in
 * total, and one that waits for ever for an acknowledgement.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from '../../support/test.js';
import type { InventorySlice } from '../../../src/frames/frame.js';
import { LeapingClock } from '../../support/leaping-clock.js';
import { shardName } from '../../support/objects.js';
import { claim, openChild } from '../../support/raw-child.js';
import { pushedExport, RawPusher, sliceOf } from '../../support/raw-pusher.js';
import { aServer } from '../../support/test-server.js';

const exports = sliceOf('apiexports');
const slicesPerFrame = 1_000;
/** One frame more in total than a link may send when it opens. */
const frames = 201;

test('a child may report the slices that it holds again and again; the total does not end its link', async (t) => {
  const server = await aServer(t, { config: `children: {'*': {accept: [{shards: ['*']}], offer: [{types: ['*']}]}}` });
  const child = await openChild(server);
  claim(child, shardName('amber'));
  child.begin(exports);
  await child.acknowledged(child.end(exports, 0, 'an edge'));
  const held = Array.from({ length: slicesPerFrame }, (_, i): InventorySlice => ({
    slice: sliceOf('apiexports', { shard: `s${i}` }),
    filterHash: '',
    syncedTerm: 0,
  }));

  for (let received = 0; received < frames; received += 1) {
    child.socket.send({ kind: 'resume', position: '', held, isLast: false });
    await child.socket.drained();
  }
  child.begin(exports);

  await t.notThrowsAsync(child.acknowledged(child.end(exports, 0, 'an edge')));
});

test('a parent ends the link of a child that answers pings but acknowledges nothing, after a minute', async (t) => {
  const clock = new LeapingClock();
  const server = await aServer(t, { config: `children: {'*': {offer: [{types: ['*']}]}}`, clock });
  const pusher = await RawPusher.open(server);
  await pusher.sync(exports, [pushedExport('one')]);
  const startedMs = clock.now();
  const child = await openChild(server);
  const known = await child.expect('claim');
  child.socket.send({ ...known, path: [...known.path, 'id-of-east'], isYours: true });
  await child.expect('put');

  let isOver = false;
  const farewell = child.expect('bye').finally(() => (isOver = true));
  for (; !isOver; await sleep(5)) clock.leap(1_000);
  const { reason } = await farewell;
  const tookMs = clock.now() - startedMs;

  t.is(reason, 'timeout');
  t.log(`sent away after ${Math.round(tookMs / 1_000)} s`);
  t.true(tookMs > 55_000 && tookMs < 120_000, `${tookMs}`);
});
