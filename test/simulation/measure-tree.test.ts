import { largeTest } from '../support/sizes.js';
import { measureTree } from './measure-tree.js';

const shape = { caches: 7, depth: 2, seed: 1, minutes: 0.1, changesPerSecond: 1, slices: 42, types: 3 };

largeTest(
  'if each cache follows its region alone, the root holds all slices and the others those of their regions, as the model says',
  async (t) => {
    const open = await measureTree({ ...shape, isByRegion: false });
    const byRegion = await measureTree({ ...shape, isByRegion: true });

    t.is(open.slicesHeld, shape.caches * shape.slices);
    // Two regions of three caches each: no slice of one region is in the other.
    t.is(byRegion.slicesHeld, shape.slices + 3 * shape.slices);
    t.true(byRegion.busyBytesPerMinute.down < open.busyBytesPerMinute.down);
  },
);
