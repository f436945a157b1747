/** How often the agent asks a shard for the types that the shard does not serve. */
import { test } from '../../support/test.js';
import { AbsentTypes } from '../../../src/kube/absent-types.js';

for (const [readers, seconds] of [
  [1, 5],
  [5, 5],
  [60, 60],
  [5_000, 120],
] as const)
  test(`each of ${readers} absent types is asked for after ${seconds} s at most`, (t) => {
    const absent = new AbsentTypes();
    const all = Array.from({ length: readers }, () => ({}));
    for (const reader of all) absent.add(reader);
    t.is(absent.waitMsMax, seconds * 1_000);

    for (const reader of all.slice(1)) absent.delete(reader);
    t.is(absent.waitMsMax, 5_000);
  });
