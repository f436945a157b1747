/** Writes of one object take turns. */
import { test } from '../../support/test.js';
import { deferred } from '../../../src/domain/base/promises.js';
import { Refused } from '../../../src/domain/errors.js';
import { ObjectTurns } from '../../../src/intake/writes/object-turns.js';
import type { Asker } from '../../../src/domain/write-request.js';
import { aKey } from '../../support/objects.js';

/** A request that waits until the test ends it. */
class FakeAsker implements Asker {
  isEnded = false;
  readonly #tasks = new Set<() => void>();

  onEnd(task: () => void): () => void {
    this.#tasks.add(task);
    return () => void this.#tasks.delete(task);
  }

  end(): void {
    this.isEnded = true;
    for (const task of this.#tasks) task();
  }
}

const lasting = new FakeAsker();

/** The order in which decisions begin, and a way to finish each. */
function aLine(turns: ObjectTurns, begun: string[]) {
  return (name: string, asker: Asker = lasting, key = aKey()) => {
    const decision = deferred<void>();
    const done = turns.run(key, asker, async () => {
      begun.push(name);
      await decision.promise;
      return name;
    });
    return { done, decide: () => decision.resolve(), fail: (error: Error) => decision.reject(error) };
  };
}

async function ticks(): Promise<void> {
  for (let i = 0; i < 10; i += 1) await Promise.resolve();
}

test('writes of one object are decided in order of arrival, and those of other objects at once', async (t) => {
  const begun: string[] = [];
  const enter = aLine(new ObjectTurns(), begun);
  const [first, second, third] = [enter('first'), enter('second'), enter('third')];
  const other = enter('other', lasting, aKey({ shard: 'birch' }));
  await ticks();
  t.deepEqual(begun, ['first', 'other']);

  first.decide();
  t.is(await first.done, 'first');
  const fourth = enter('fourth');
  for (const each of [second, third, fourth]) {
    each.decide();
    await each.done;
  }
  other.decide();
  await other.done;

  t.deepEqual(begun, ['first', 'other', 'second', 'third', 'fourth']);
});

test('a write that fails passes its turn on', async (t) => {
  const begun: string[] = [];
  const enter = aLine(new ObjectTurns(), begun);
  const [first, second] = [enter('first'), enter('second')];
  first.fail(new Error('the disk is full'));
  second.decide();

  await t.throwsAsync(first.done, { message: 'the disk is full' });
  t.is(await second.done, 'second');
});

test('a write leaves the line at once when its request ends, and a write whose request has ended does not enter it', async (t) => {
  const begun: string[] = [];
  const turns = new ObjectTurns();
  const enter = aLine(turns, begun);
  const ending = new FakeAsker();
  const first = enter('first');
  const gone = Array.from({ length: 1_000 }, () => enter('gone', ending));
  const last = enter('last');

  ending.end();
  for (const { done } of gone) await t.throwsAsync(done, { instanceOf: Refused });
  await t.throwsAsync(enter('late', ending).done, { instanceOf: Refused });
  first.decide();
  last.decide();
  await last.done;

  t.deepEqual(begun, ['first', 'last']);
  const next = enter('next');
  next.decide();
  t.is(await next.done, 'next', 'nobody is left in the line');
});
