/**
 * A peer's reports about slices are kept up to 48 MiB of names. The types that are not whole are
 * named as long as they are few.
 */
import { test } from '../../support/test.js';
import { SliceReports } from '../../../src/intake/shards/slice-reports.js';
import { formatResource } from '../../../src/domain/resource.js';
import { aSlice } from '../../support/pushes.js';

test('reports with names of 700 characters are ignored beyond 48 MiB, and there is room again once some are withdrawn', (t) => {
  const reports = new SliceReports();
  const slice = (i: number): ReturnType<typeof aSlice> => aSlice({ identity: `${i}-`.padEnd(700, 'x') });
  const report = (i: number): number =>
    reports.update([{ slice: slice(i), connected: true, synced: true, lagMs: 0, whole: true }], 0).length;

  let count = 0;
  while (report(count) === 1 && count < 200_000) count += 1;

  t.true(count > 60_000 && count < 75_000, `${count} slices`);
  t.is(report(count + 1), 0);
  t.is(reports.withdraw([slice(0)], 0).length, 1);
  t.is(report(count), 1);
  t.is(report(count + 1), 0);
});

test('the types of a shard that are not whole are named if there are any and their names fit', (t) => {
  const reports = new SliceReports();
  const [one, two] = [aSlice({ identity: 'one' }), aSlice({ identity: 'two' })];
  const note = (slice: typeof one, whole: boolean): unknown =>
    reports.update([{ slice, connected: true, synced: true, lagMs: 0, whole }], 0);
  const [nameOfOne, nameOfTwo] = [formatResource(one.resource), formatResource(two.resource)];
  const lacks = (charactersMax: number, held: readonly (typeof one)[] = []): ReadonlySet<string> | undefined =>
    reports.lackingTypes(
      one.shard,
      held.map(({ resource }) => resource),
      charactersMax,
    );
  t.deepEqual(lacks(1_000), new Set(), 'nothing is reported, and nothing is held');
  t.deepEqual(lacks(1_000, [one]), new Set([nameOfOne]), 'nothing is reported');
  note(one, true);
  note(two, false);
  t.deepEqual(lacks(nameOfTwo.length), new Set([nameOfTwo]));
  note(one, false);
  t.is(lacks(nameOfOne.length + nameOfTwo.length - 1), undefined, 'one is too long');
  t.deepEqual(lacks(nameOfOne.length + nameOfTwo.length), new Set([nameOfOne, nameOfTwo]));
  note(one, true);
  note(two, true);
  t.deepEqual(lacks(1_000, [one, two]), new Set(), 'all are whole');
  reports.withdraw([two], 0);
  t.deepEqual(lacks(1_000, [one, two]), new Set([nameOfTwo]), 'nothing is reported of it any more');
});
