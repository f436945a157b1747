/**
 * A snapshot of an earlier revision, while history is long and grows. Finds one that shows a key
 * twice, not at all, or as it was at another revision.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { test } from '../../../support/test.js';
import type { Change } from '../../../../src/domain/change.js';
import { emptyDigest } from '../../../../src/domain/slices/digest.js';
import type { Key } from '../../../../src/domain/key.js';
import type { StoredObject } from '../../../../src/domain/object.js';
import { HistoryWindow } from '../../../../src/store/etcd/history-window.js';
import { KeyIndex } from '../../../../src/store/etcd/key-index.js';
import type { IndexedObject } from '../../../../src/store/etcd/object-reader.js';
import { EtcdSnapshot } from '../../../../src/store/etcd/snapshot.js';
import { fastestAnswerMs } from '../../../support/fastest.js';
import { aBody, aKey, aScope } from '../../../support/objects.js';
import { seeded } from '../../../support/crash/random.js';

const wide = { ageMs: Infinity, changesMax: Infinity, bytesMax: Infinity };
const body = aBody(aKey());

/** An index and its history, as a store keeps them, and what it held at each revision. */
class Held {
  readonly objects = new KeyIndex<IndexedObject>();
  readonly window = new HistoryWindow(0, wide);
  readonly #now = new Map<string, StoredObject>();
  revision = 0;

  /** One revision that puts and deletes some keys. */
  change(keys: readonly Key[], isDelete: boolean): void {
    this.revision += 1;
    const { revision } = this;
    const changes = keys.flatMap((key): readonly Change[] => {
      const before = this.#now.get(key.name);
      const of = { key, revision, previous: () => before };
      if (isDelete) {
        if (before === undefined) return [];
        this.#now.delete(key.name);
        this.objects.delete(key);
        return [{ kind: 'delete', resourceVersion: String(revision), ...of }];
      }
      const object = { key, revision, resourceVersion: String(revision), body };
      this.#now.set(key.name, object);
      this.objects.set({ key, revision, bytes: 1, digest: emptyDigest, path: undefined });
      return [{ kind: 'put', object, created: before === undefined, ...of }];
    });
    this.window.add(changes, 0);
  }

  snapshot(rowsMax: number): EtcdSnapshot {
    const parts = {
      objects: this.objects,
      history: this.window,
      reader: { read: async (indexed: readonly { key: Key }[]) => indexed.map(({ key }) => this.#now.get(key.name)!) },
      assertCovered: () => {},
      release: () => {},
    };
    return new EtcdSnapshot(aScope(), this.revision, parts, { rowsMax, bytesMax: Infinity });
  }

  /** Each key with its revision, in order. */
  get text(): string {
    return textOf([...this.#now.values()]);
  }
}

function textOf(objects: readonly StoredObject[]): string {
  return objects
    .map(({ key, revision }) => `${key.name}@${revision}`)
    .toSorted()
    .join(' ');
}

const seed = Number(process.env['TEST_SEED'] ?? Date.now() % 1_000_000);

for (const history of [0, 5, 30_000])
  test(`every key of the revision is shown once, as it was, after ${history} later changes and while others arrive`, async (t) => {
    t.log(`TEST_SEED=${seed}`);
    const random = seeded(seed + history);
    const keys = Array.from({ length: 300 }, (_, i) => aKey({ name: `n${i}` }));
    const some = (): readonly Key[] => keys.filter(() => random.chance(0.02));
    const held = new Held();
    for (let i = 0; i < 200; i += 1) held.change(some(), random.chance(0.3));
    const expected = held.text;
    const snapshot = held.snapshot(40);
    for (let changes = 0; changes < history; changes += 6) held.change(some(), random.chance(0.4));

    let isOver = false;
    const writing = (async () => {
      for (; !isOver; await turn()) held.change(some(), random.chance(0.4));
    })();
    const found: StoredObject[] = [];
    for (let after: Key | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
      const page = await snapshot.page(after);
      found.push(...page.objects);
      after = page.next;
      await turn();
    }
    isOver = true;
    await writing;
    snapshot.close();

    t.is(textOf(found), expected);
    const inOrder = found.map(({ key }) => key.name);
    t.deepEqual(inOrder, inOrder.toSorted());
  });

test('a page of an earlier revision costs no more if thirty times as many keys have been deleted since', async (t) => {
  const pageMs = async (number: number): Promise<number> => {
    const held = new Held();
    const keys = Array.from({ length: number }, (_, i) => aKey({ name: `n${String((i * 7_919) % number).padStart(6, '0')}` }));
    held.change(keys, false);
    const [snapshot, before] = [held.snapshot(100), held.text.split(' ').length];
    held.change(keys, true);
    const { objects, next } = await snapshot.page(undefined);
    t.deepEqual([before, objects.length, next?.name], [number, 100, 'n000099']);
    // While V8 still marks the objects made above, each turn of the event loop includes a step of
    // that.
    return fastestAnswerMs(() => snapshot.page(next), 300);
  };

  const [few, many] = [await pageMs(1_000), await pageMs(30_000)];
  t.true(many < few * 10 + 1, `${few.toFixed(2)} ms, ${many.toFixed(2)} ms`);
});

test('a page takes many turns of the event loop to skip keys that were created later', async (t) => {
  const held = new Held();
  held.change([aKey({ name: 'z' })], false);
  const snapshot = held.snapshot(10);
  held.change(
    Array.from({ length: 20_000 }, (_, i) => aKey({ name: `n${i}` })),
    false,
  );
  let [turns, isOver] = [0, false];
  const counting = (async () => {
    for (; !isOver; await turn()) turns += 1;
  })();

  const found: StoredObject[] = [];
  for (let after: Key | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
    const { objects, next } = await snapshot.page(after);
    found.push(...objects);
    after = next;
  }
  isOver = true;
  await counting;

  t.is(textOf(found), 'z@1');
  t.true(turns >= 19, `${turns} turns`);
});
