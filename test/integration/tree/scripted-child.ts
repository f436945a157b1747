/** A child of a real tree that sends what a test wants, once both have greeted each other. */
import type { Frame, FrameOf } from '../../../src/frames/frame.js';
import { ConnectionEnd } from './connection-pair.js';
import { aBeginning, aCaller, aHello, type RigCache, type TreeRig } from './tree-rig.js';

/**
 * It acknowledges everything, unless `acknowledges` is false. Without `hasOpened` it has not sent
 * its `resume` yet. `counted.frames`: how many of its frames the parent has read.
 */
export async function scriptedChild(rig: TreeRig, root: RigCache, name = 'west', { acknowledges = true, hasOpened = true } = {}) {
  const [child, end] = ConnectionEnd.pair([name, 'root']);
  rig.connections.push([child, end]);
  const counted = { frames: 0 };
  const read = async function* (): AsyncGenerator<Frame> {
    for await (const frame of end.frames()) {
      counted.frames += 1;
      yield frame;
    }
  };
  void root.tree.accept(end, { hello: aHello({ name, route: [`id-of-${name}`] }), frames: read(), caller: aCaller(name) });
  for (const frame of aBeginning()) if (hasOpened || frame.kind !== 'resume') child.send(frame);
  if (acknowledges) void acknowledge(child);
  await rig.settle();
  return { child, end, counted };
}

async function acknowledge(child: ConnectionEnd): Promise<void> {
  for await (const frame of child.frames()) {
    if (!('sequence' in frame) || frame.kind === 'ack' || frame.kind === 'refuse') continue;
    const mutations = frame.kind === 'put' ? frame.objects.length : frame.kind === 'delete' ? frame.keys.length : 1;
    child.send({ kind: 'ack', sequence: frame.sequence + mutations - 1, credit: { mutations: 1_000, bytes: 1_000_000 } });
  }
}

/** The first claim that the child was sent. */
export function claimSentTo({ end }: Readonly<{ end: ConnectionEnd }>): FrameOf<'claim'> {
  const claim = end.sent.find((frame): frame is FrameOf<'claim'> => frame.kind === 'claim');
  if (claim === undefined) throw new Error('no claim was sent');
  return claim;
}
