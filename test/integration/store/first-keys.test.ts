import { test } from '../../support/test.js';
import fc from 'fast-check';
import { FirstKeys, type KeyAt } from '../../../src/store/sqlite/first-keys.js';
import { listTexts, mustWrite } from '../../contract/read-all.js';
import { anyCharacter } from '../../support/any-character.js';
import { aDelete, aKey, aPut, aScope } from '../../support/objects.js';
import { SqliteEngine } from '../../support/store/sqlite-engine.js';
import type { Key } from '../../../src/domain/key.js';

const max = 4;
const order = (a: Key, b: Key): number => (a.name === b.name ? 0 : a.name < b.name ? -1 : 1);
const nameOf = ({ key }: KeyAt): string => key.name;

test('the first keys of several runs are the first keys of all, and no run is read further than necessary', (t) => {
  const letters = fc.uniqueArray(fc.constantFrom(...'abcdefghijklmnop'), { maxLength: 12 }).map((names) => names.toSorted());
  fc.assert(
    fc.property(fc.array(letters, { maxLength: 5 }), (runs) => {
      const keys = new FirstKeys(order, max);
      for (const run of runs) {
        const upTo = keys.last?.name ?? 'z';
        const read = run.filter((name) => name <= upTo).slice(0, max);
        const held = read.map((name) => ({ key: aKey({ name }), revision: 1 }));
        keys.add(held, held.length < max ? undefined : held.at(-1)?.key);
      }

      const all = [...new Set(runs.flat())].toSorted();
      const found = keys.inOrder().map(nameOf);
      const last = keys.last?.name;
      t.deepEqual(found, last === undefined ? all : all.filter((name) => name <= last));
      t.true(last === undefined || found.length > 0);
    }),
  );
});

test('deleted keys are merged into a list in the order of SQLite, whatever characters their names have', async (t) => {
  const { store } = await SqliteEngine.start(t, { snapshot: { rowsMax: 7 } });
  const names = [
    ...new Set(['~', '\u{1F600}', '\uFF5E', '\uFFFD', 'é', 'é1', ...fc.sample(fc.string({ unit: anyCharacter, minLength: 1 }), 150)]),
  ];
  const written = names.filter((name) => !/[\0\p{Surrogate}]/u.test(name));
  for (const name of written) await mustWrite(store, aPut({ name }, 'absent'));
  const revision = store.revisions.published;
  const expected = await listTexts(store, aScope());

  for (const [i, name] of written.entries()) if (i % 2 === 0) await mustWrite(store, aDelete({ name }));

  t.is(expected.length, written.length);
  t.deepEqual(await listTexts(store, aScope(), { revision }), expected);
});
