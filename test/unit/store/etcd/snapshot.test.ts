/** A snapshot of an earlier revision, while history is long and goes on: it would find one that shows a key twice, not at all, or as it was at another revision. */
import { setImmediate as turn } from 'node:timers/promises';
import { test } from '../../../support/test.js';
import { Budget } from '../../../../src/domain/budget.js';
import type { Change } from '../../../../src/domain/change.js';
import { emptyDigest } from '../../../../src/domain/digest.js';
import type { Key } from '../../../../src/domain/key.js';
import type { StoredObject } from '../../../../src/domain/object.js';
import type { BodyReader } from '../../../../src/store/etcd/body-reader.js';
import { HistoryWindow } from '../../../../src/store/etcd/history-window.js';
import { ObjectIndex } from '../../../../src/store/etcd/object-index.js';
import { EtcdSnapshot } from '../../../../src/store/etcd/snapshot.js';
import { aBody, aKey, aScope } from '../../../support/objects.js';
import { seeded } from '../../../support/crash/random.js';

const wide = { ageMs: Infinity, changesMax: Infinity, bytesMax: Infinity };
const body = aBody(aKey());

/** An index, its history and the snapshots that are open, as a store keeps them; and what it held at each revision that is asked for. */
class Held {
  /** For keys beyond a thousand. */
  readonly room: Budget;
  readonly objects = new ObjectIndex();
  readonly window = new HistoryWindow(0, wide);
  readonly #now = new Map<string, StoredObject>();
  readonly #open = new Set<EtcdSnapshot>();
  revision = 0;

  constructor(keysMax = Infinity) {
    this.room = new Budget(keysMax);
  }

  /** One revision: puts and deletes of some keys. */
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
    for (const snapshot of this.#open) snapshot.note(changes);
  }

  snapshot(rowsMax: number): EtcdSnapshot {
    const scope = aScope();
    const reader = {
      read: async (indexed: readonly { key: Key }[]) => indexed.map(({ key }) => this.#now.get(key.name)!),
    } as unknown as BodyReader;
    const parts = {
      objects: this.objects,
      reader,
      room: this.room,
      since: (after: number) => this.window.since(scope, after),
      assertCovered: () => {},
      release: () => this.#open.delete(snapshot),
    };
    const snapshot: EtcdSnapshot = new EtcdSnapshot(scope, this.revision, parts, { rowsMax, bytesMax: Infinity });
    this.#open.add(snapshot);
    return snapshot;
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
  test(`every key that was there comes once and as it was, while ${history} changes have come since and others come`, async (t) => {
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

test('a long history is looked at in many turns', async (t) => {
  const held = new Held();
  held.change([aKey()], false);
  const snapshot = held.snapshot(10);
  for (let i = 0; i < 20_000; i += 1) held.change([aKey()], false);
  let [turns, isOver] = [0, false];
  const counting = (async () => {
    for (; !isOver; await turn()) turns += 1;
  })();

  const { objects } = await snapshot.page(undefined);
  isOver = true;
  await counting;

  t.deepEqual(
    objects.map(({ revision }) => revision),
    [1],
  );
  t.true(turns >= 39, `${turns} turns`);
});

test('snapshots together hold no more keys than there is room for: one without is expired, and gives back what it had', async (t) => {
  const held = new Held(1_500);
  const keys = Array.from({ length: 2_000 }, (_, i) => aKey({ name: `n${i}` }));
  held.change(keys, false);
  const [first, second, grown] = [held.snapshot(10), held.snapshot(10), held.snapshot(10)];
  held.change(keys.slice(0, 900), false);
  await grown.page(undefined);
  t.is(held.room.used, 0, 'a thousand keys are its own');
  held.change(keys.slice(0, 1_400), false);
  t.is(held.room.used, 400);

  await first.page(undefined);
  t.is(held.room.used, 800);
  held.change(keys, false);
  t.is(held.room.used, 1_000, 'one of the two had no room for what came');

  await t.throwsAsync(second.page(undefined), { message: /too old resource version/ });
  t.is(held.room.used, 1_000, 'it has given back what it took');
  for (const snapshot of [first, grown, second]) snapshot.close();
  t.is(held.room.used, 0);
  const last = held.snapshot(10);
  held.change(keys, true);
  t.is((await last.page(undefined)).objects.length, 10);
  last.close();
  t.is(held.room.used, 0);
});

test('a snapshot that is closed while it looks at history takes no more room', async (t) => {
  const held = new Held(5_000);
  const keys = Array.from({ length: 4_000 }, (_, i) => aKey({ name: `n${i}` }));
  held.change(keys, false);
  const snapshot = held.snapshot(10);
  for (const key of keys) held.change([key], false);

  const page = snapshot.page(undefined);
  while (held.room.used === 0) await turn();
  snapshot.close();
  await t.throwsAsync(page, { message: /too old resource version/ });

  t.is(held.room.used, 0);
});
