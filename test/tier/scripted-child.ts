/** A child of a real tier that says what a test wants it to, once both have greeted each other. */
import type { Frame, FrameOf } from '../../src/frames/frame.js';
import { ConnectionEnd } from './connection-pair.js';
import { aBeginning, aCaller, aHello, type RigCache, type TierRig } from './tier-rig.js';

/** `counted.frames`: how many of its frames were read. */
export async function scriptedChild(rig: TierRig, root: RigCache, name = 'west') {
  const [child, end] = ConnectionEnd.pair([name, 'root']);
  rig.connections.push([child, end]);
  const counted = { frames: 0 };
  const read = async function* (): AsyncGenerator<Frame> {
    for await (const frame of end.frames()) {
      counted.frames += 1;
      yield frame;
    }
  };
  void root.tier.accept(end, { hello: aHello({ name, route: [`id-of-${name}`] }), frames: read(), caller: aCaller(name) });
  for (const frame of aBeginning()) child.send(frame);
  await rig.settle();
  return { child, end, counted };
}

/** The first that it was told. */
export function claimToldTo({ end }: Readonly<{ end: ConnectionEnd }>): FrameOf<'claim'> {
  const claim = end.sent.find((frame): frame is FrameOf<'claim'> => frame.kind === 'claim');
  if (claim === undefined) throw new Error('no claim was told');
  return claim;
}
