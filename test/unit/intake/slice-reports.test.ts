/** What a peer reports of slices is kept for 48 MiB of names. */
import { test } from '../../support/test.js';
import { SliceReports } from '../../../src/intake/slice-reports.js';
import { aSlice } from '../../support/pushes.js';

test('of reports with names of 700 characters those beyond 48 MiB are ignored, and there is room again once some are withdrawn', (t) => {
  const reports = new SliceReports();
  const slice = (i: number): ReturnType<typeof aSlice> => aSlice({ identity: `${i}-`.padEnd(700, 'x') });
  const report = (i: number): number => reports.note([{ slice: slice(i), connected: true, synced: true, lagMs: 0, whole: true }], 0).length;

  let count = 0;
  while (report(count) === 1 && count < 200_000) count += 1;

  t.true(count > 60_000 && count < 75_000, `${count} slices`);
  t.is(report(count + 1), 0);
  t.is(reports.withdraw([slice(0)], 0).length, 1);
  t.is(report(count), 1);
  t.is(report(count + 1), 0);
});
