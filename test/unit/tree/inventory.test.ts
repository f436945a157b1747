/**
 * What a cache sends the other end of a link about the slices that it holds, in frames that the
 * other end reads.
 */
import { test } from '../../support/test.js';
import type { Frame } from '../../../src/frames/frame.js';
import { readFrame, writeFrame } from '../../../src/frames/frame-codec.js';
import { Inventory } from '../../../src/tree/links/inventory.js';
import { childNeighbour } from '../../../src/domain/via.js';
import type { FrameConnection } from '../../../src/frames/frame-connection.js';
import { aShardState, FakePushes } from '../../support/intake/fake-pushes.js';
import { shardName } from '../../support/objects.js';
import { aSlice } from '../../support/pushes.js';

const amber = shardName('amber');

test('the held slices of a shard that has moved to the other end are named, a thousand a frame, at the opening and later', async (t) => {
  const pushes = new FakePushes();
  const east = childNeighbour('east');
  pushes.publish({ shards: [{ ...aShardState(amber, 5), via: east }] });
  for (let i = 0; i < 2_500; i += 1) pushes.hold(aSlice({ identity: `i${i}` }), {});
  const known = pushes.state;
  const sent: Frame[] = [];
  const connection = {
    send: (frame: Frame) => void sent.push(readFrame(writeFrame(frame))),
    drained: async () => {},
  } as unknown as FrameConnection;
  const heldSlices = new Inventory({ known, unknownOf: () => [], connection }, east);

  await heldSlices.sendAll();
  const atOpening = sent.splice(0);
  heldSlices.sendOf(amber);

  for (const frames of [atOpening, sent]) {
    const held = frames.flatMap((frame) => (frame.kind === 'resume' ? frame.held : []));
    t.is(new Set(held.map(({ slice }) => slice.resource.identity)).size, 2_500);
    t.is(frames.length, 3);
  }
  heldSlices.close();
});
