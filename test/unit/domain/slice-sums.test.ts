import { test } from '../../support/test.js';
import { sumSlices } from '../../../src/domain/slices/slice-sums.js';
import { aSlice } from '../../support/status-report.js';

test('slices are counted and summed, with the last change and the longest lag', (t) => {
  const held = { removes: 7, forMs: 1, releaseInMs: 2 };
  const slices = [
    aSlice({ objects: 2, bytes: 10, changedAgoMs: 500, lagMs: 3 }),
    aSlice({ objects: 3, bytes: 20, changedAgoMs: 40, lagMs: 9, whole: false, held }),
    aSlice({ objects: 0, bytes: 0, changedAgoMs: null, lagMs: null, everSynced: false, whole: false, held }),
  ];

  t.deepEqual(sumSlices(slices), { everSynced: 2, whole: 1, objects: 5, bytes: 30, removes: 14, changedAgoMs: 40, lagMs: 9 });
});

test('the sums of no slices have no last change and no lag', (t) => {
  t.deepEqual(sumSlices([]), { everSynced: 0, whole: 0, objects: 0, bytes: 0, removes: null, changedAgoMs: null, lagMs: null });
});
