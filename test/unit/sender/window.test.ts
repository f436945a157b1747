import { test } from '../../support/test.js';
import fc from 'fast-check';
import type { Pending } from '../../../src/sender/batch.js';
import { Window } from '../../../src/sender/window.js';

const credit = { mutations: 4, bytes: 100 };

function pending(bytes = 10, sinceMs = 0): Pending {
  return {
    outgoing: { kind: 'delete', key: { cluster: 'acme', namespace: '', name: 'one' } },
    bytes,
    sinceMs,
    sync: 1,
    order: 1,
    syncing: false,
  };
}

test('mutations are numbered from 1, and a frame has the number of its first', (t) => {
  const window = new Window<string>(credit);

  t.is(window.add('a', [pending(), pending()]), 1);
  t.is(window.add('b', [pending()]), 3);
  window.acknowledge(2, credit);
  t.is(window.add('a', [pending()]), 4);
});

test('beyond the credit nothing fits, in mutations or in bytes', (t) => {
  const window = new Window<string>(credit);
  window.add('a', [pending(40), pending(40)]);

  t.true(window.fits(2, 20));
  t.false(window.fits(3, 20));
  t.false(window.fits(1, 21));
});

test('an object larger than the credit in bytes fits if nothing else is unacknowledged', (t) => {
  const window = new Window<string>(credit);

  t.true(window.fits(1, 1_000));
  window.add('a', [pending(1_000)]);
  t.false(window.fits(1, 0));
  t.false(window.hasCredit);
});

test('nothing fits while a cache gives no credit', (t) => {
  t.false(new Window<string>({ mutations: 0, bytes: 100 }).fits(1, 1));
  t.false(new Window<string>({ mutations: 1, bytes: 0 }).fits(1, 1));
});

test('an acknowledgement may end inside a frame, arrive twice, or only carry new credit', (t) => {
  const window = new Window<string>(credit);
  window.add('a', [pending(), pending(), pending()]);

  t.is(window.acknowledge(2, credit)?.length, 2);
  t.deepEqual(window.unacknowledged, { mutations: 1, bytes: 10 });
  t.deepEqual(window.acknowledge(1, { mutations: 9, bytes: 9 }), []);
  t.deepEqual(window.credit, { mutations: 9, bytes: 9 });
  t.is(window.acknowledge(3, credit)?.length, 1);
});

test('a number that was never sent cannot be acknowledged', (t) => {
  const window = new Window<string>(credit);
  window.add('a', [pending()]);

  t.is(window.acknowledge(2, credit), undefined);
  t.is(window.unacknowledged.mutations, 1);
});

test('a mutation is found by its number until it is acknowledged', (t) => {
  const window = new Window<string>(credit);
  const [first, second] = [pending(1), pending(2)];
  window.add('a', [first, second]);

  t.is(window.find(2)?.item, second);
  window.acknowledge(1, credit);
  t.is(window.find(1), undefined);
  t.is(window.find(2)?.item, second);
  t.is(window.find(3), undefined);
});

test('each owner sees how much of its own is unacknowledged and how old the oldest is', (t) => {
  const window = new Window<string>(credit);
  window.add('a', [pending(1, 100), pending(2, 200)]);
  window.add('b', [pending(3, 300)]);

  t.deepEqual(
    [...window.tally()],
    [
      ['a', { mutations: 2, bytes: 3, oldestMs: 100 }],
      ['b', { mutations: 1, bytes: 3, oldestMs: 300 }],
    ],
  );
});

test('whatever is added is acknowledged or taken back, once, in order', (t) => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('add' as const), owner: fc.constantFrom('a', 'b'), count: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ kind: fc.constant('ack' as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
  );
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const window = new Window<string>(credit);
      const added: Readonly<{ owner: string; item: Pending }>[] = [];
      const out: Readonly<{ owner: string; item: Pending }>[] = [];
      for (const each of steps) {
        if (each.kind === 'add') {
          const items = Array.from({ length: each.count }, () => pending());
          window.add(each.owner, items);
          added.push(...items.map((item) => ({ owner: each.owner, item })));
        } else out.push(...(window.acknowledge(Math.floor(each.share * added.length), credit) ?? []));
      }
      const back = window.takeBack();
      const isWhole = ['a', 'b'].every((owner) => {
        const of = (sent: typeof added) => sent.filter((each) => each.owner === owner).map(({ item }) => item);
        const seen = [...of(out), ...(back.get(owner) ?? [])];
        return seen.length === of(added).length && seen.every((item, index) => item === of(added)[index]);
      });
      return isWhole && window.unacknowledged.mutations === 0 && window.unacknowledged.bytes === 0;
    }),
  );
  t.pass();
});

test('the window knows whose mutations are unacknowledged, until they are acknowledged or taken back', (t) => {
  const window = new Window<string>(credit);
  window.add('a', [pending(), pending()]);
  window.add('b', [pending()]);

  window.acknowledge(1, credit);
  t.deepEqual([window.has('a'), window.has('b'), window.has('c')], [true, true, false]);
  window.acknowledge(2, credit);
  t.deepEqual([window.has('a'), window.has('b')], [false, true]);
  window.takeBack();
  t.false(window.has('b'));
});
