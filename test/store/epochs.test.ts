import test from 'ava';
import { Epochs, firstEpoch, nextEpoch } from '../../src/store/sqlite/epochs.js';

const one = new Epochs([{ epoch: 1_234_567, firstRevision: 1 }]);
/** Born in 1234567; rolled back to 500 and to 800, so that 501…800 and 801… were committed in later epochs. */
const three = new Epochs([
  { epoch: 1_234_567, firstRevision: 1 },
  { epoch: 1_234_890, firstRevision: 501 },
  { epoch: 1_235_001, firstRevision: 801 },
]);

test('a revision is spelled as its epoch in 7 digits and itself in 12', (t) => {
  t.is(one.format(0), '1234567000000000000');
  t.is(one.format(1), '1234567000000000001');
  t.is(one.format(999_999_999_999), '1234567999999999999');
  t.is(three.format(500), '1234567000000000500');
  t.is(three.format(501), '1234890000000000501');
  t.is(three.format(801), '1235001000000000801');
});

test('a version is ours exactly when its revision lies in the recorded range of its epoch, and not in the future', (t) => {
  const ours = (revision: number) => ({ kind: 'ours', revision }) as const;
  const above = { kind: 'above' } as const;
  const below = { kind: 'below' } as const;
  const cases: [string, Epochs, string, number, ReturnType<Epochs['locate']>][] = [
    ['an empty store has a version', one, '1234567000000000000', 0, ours(0)],
    ['of an empty store, the future', one, '1234567000000000001', 0, above],
    ['what is published', one, '1234567000000000700', 700, ours(700)],
    ['the future', one, '1234567000000000701', 700, above],
    ['foreign and larger', one, '1234568000000000001', 700, above],
    ['foreign and smaller', one, '1234566999999999999', 700, below],
    ['kcp starts at 1', one, '1', 700, below],
    ['a revision of etcd', one, '48213', 700, below],
    ['one digit more', one, '12345670000000007000', 700, above],
    ['one digit less', one, '123456700000000070', 700, below],
    ['beyond 64 bits', one, '99999999999999999999999', 700, above],
    ['the restored prefix', three, '1234567000000000500', 900, ours(500)],
    ['the restored prefix, at 0', three, '1234567000000000000', 900, ours(0)],
    ['what was rolled back', three, '1234567000000000501', 900, below],
    ['the middle epoch, from its first', three, '1234890000000000501', 900, ours(501)],
    ['the middle epoch, before its first', three, '1234890000000000500', 900, below],
    ['the middle epoch, revision 0', three, '1234890000000000000', 900, below],
    ['the middle epoch, behind its last', three, '1234890000000000801', 900, below],
    ['the newest epoch', three, '1235001000000000900', 900, ours(900)],
    ['the newest epoch, the future', three, '1235001000000000901', 900, above],
    ['between two epochs', three, '1234891000000000600', 900, below],
    ['right after the rollback, what was lost', three, '1234890000000000801', 800, above],
    ['right after the rollback, the newest epoch is empty', three, '1235001000000000801', 800, above],
  ];
  for (const [title, epochs, text, published, expected] of cases) t.deepEqual(epochs.locate(text, published), expected, title);
});

test('every revision leads back to itself, and texts rise with it across epochs', (t) => {
  let last = -1n;
  for (let revision = 0; revision <= 1000; revision++) {
    const text = three.format(revision);
    t.deepEqual(three.locate(text, 1000), { kind: 'ours', revision });
    t.true(BigInt(text) > last);
    last = BigInt(text);
  }
});

test('two epochs of a store that was rolled back to nothing do not quarrel over revision 0', (t) => {
  const epochs = new Epochs([
    { epoch: 1_000_000, firstRevision: 1 },
    { epoch: 1_000_500, firstRevision: 1 },
  ]);

  t.is(epochs.format(1), '1000500000000000001');
  t.deepEqual(epochs.locate(epochs.format(0), 0), { kind: 'ours', revision: 0 });
  t.deepEqual(epochs.locate('1000000000000000001', 5), { kind: 'below' });
  t.deepEqual(epochs.locate('1000500000000000001', 5), { kind: 'ours', revision: 1 });
});

test('a store is born with 7 digits, and a new epoch is higher by 1 to 1000', (t) => {
  t.is(
    firstEpoch(() => 0),
    1_000_000,
  );
  t.is(
    firstEpoch(() => 0.999_999_999),
    7_999_999,
  );
  t.is(
    nextEpoch(1_000_000, () => 0),
    1_000_001,
  );
  t.is(
    nextEpoch(1_000_000, () => 0.999_999_999),
    1_001_000,
  );
});
