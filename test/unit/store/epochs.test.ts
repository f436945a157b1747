import { test } from '../../support/test.js';
import type { Located } from '../../../src/domain/revision.js';
import { isUsedUp, nextEpoch, nextNonce, type Epoch } from '../../../src/store/epochs.js';
import { SqliteRevisions } from '../../../src/store/sqlite/revisions.js';

const of = (epochs: readonly Epoch[], revision = 0): SqliteRevisions => new SqliteRevisions({ epochs, revision, compacted: 0 });

const one: readonly Epoch[] = [{ epoch: 217_234_567, firstRevision: 1, nonce: 0 }];
/** Three starts: 1…500, 501…800 and 801… were each written in one epoch. */
const three: readonly Epoch[] = [
  { epoch: 217_234_567, firstRevision: 1, nonce: 700 },
  { epoch: 217_234_890, firstRevision: 501, nonce: 0 },
  { epoch: 217_235_001, firstRevision: 801, nonce: 999_999_999 },
];

test('a revision is spelled as its epoch in 9 digits and a count since the epoch began in 10', (t) => {
  t.is(of(one).format(0), '2172345670000000000');
  t.is(of(one).format(1), '2172345670000000001');
  t.is(of(one).format(9_999_999_999), '2172345679999999999');
  t.is(of(three).format(1), '2172345670000000701');
  t.is(of(three).format(500), '2172345670000001200');
  t.is(of(three).format(501), '2172348900000000001');
  t.is(of(three).format(801), '2172350011000000000');
});

test('a version belongs to this store exactly if its count is in the range of its epoch, and not in the future', (t) => {
  const ours = (revision: number) => ({ kind: 'ours', revision }) as const;
  const above = { kind: 'above' } as const;
  const below = { kind: 'below' } as const;
  const cases: [string, readonly Epoch[], string, number, Located][] = [
    ['an empty store has a version', one, '2172345670000000000', 0, ours(0)],
    ['of an empty store, the future', one, '2172345670000000001', 0, above],
    ['what is published', one, '2172345670000000700', 700, ours(700)],
    ['the future', one, '2172345670000000701', 700, above],
    ['foreign and larger', one, '2172345680000000001', 700, above],
    ['foreign and smaller', one, '2172345669999999999', 700, below],
    ['kcp starts at 1', one, '1', 700, below],
    ['a revision of etcd', one, '48213', 700, below],
    ['one digit more', one, '21723456700000007000', 700, above],
    ['one digit less', one, '217234567000000070', 700, below],
    ['beyond 64 bits', one, '99999999999999999999999', 700, above],
    ['of the form before this one', one, '4500000000000000501', 700, above],
    ['of an earlier life', three, '2172345670000001200', 900, ours(500)],
    ['of the first life, when it was empty', three, '2172345670000000700', 900, ours(0)],
    ['of the first life, before its nonce', three, '2172345670000000699', 900, below],
    ['what came in the first life behind what is here', three, '2172345670000001201', 900, below],
    ['of the middle life, its first', three, '2172348900000000001', 900, ours(501)],
    ['of the middle life, before its first: nobody was given that', three, '2172348900000000000', 900, below],
    ['of the middle life, behind its last', three, '2172348900000000301', 900, below],
    ['of this life', three, '2172350011000000099', 900, ours(900)],
    ['of this life, the future', three, '2172350011000000100', 900, above],
    ['of this life, with another nonce', three, '2172350010000000001', 900, below],
    ['of another life between', three, '2172348910000000001', 900, below],
    ['right after the start, of the life before, what was lost', three, '2172348900000000301', 800, above],
    ['right after the start, of this life', three, '2172350011000000000', 800, above],
  ];
  for (const [title, epochs, text, published, expected] of cases) t.deepEqual(of(epochs, published).locate(text), expected, title);
});

test('every revision can be read back from its text, and texts rise with revisions across epochs', (t) => {
  const many = Array.from({ length: 333 }, (_, i) => ({ epoch: 217_000_000 + i, firstRevision: 3 * i + 1, nonce: (i * 7) % 10 }));
  for (const epochs of [three, many]) {
    const revisions = of(epochs, 1000);
    let last = -1n;
    for (let revision = 0; revision <= 1000; revision++) {
      const text = revisions.format(revision);
      t.deepEqual(revisions.locate(text), { kind: 'ours', revision });
      t.true(BigInt(text) > last);
      last = BigInt(text);
    }
  }
});

test('epochs that began with an empty store do not conflict over revision 0', (t) => {
  const epochs = [
    { epoch: 217_000_000, firstRevision: 1, nonce: 5 },
    { epoch: 217_000_500, firstRevision: 1, nonce: 5 },
  ];
  const [empty, filled] = [of(epochs), of(epochs, 5)];

  t.is(empty.format(0), '2170000000000000005');
  t.is(filled.format(1), '2170005000000000006');
  t.deepEqual(empty.locate(empty.format(0)), { kind: 'ours', revision: 0 });
  t.deepEqual(filled.locate('2170000000000000006'), { kind: 'below' });
  t.deepEqual(filled.locate('2170005000000000006'), { kind: 'ours', revision: 1 });
});

test('an epoch that has just begun is the current one', (t) => {
  const revisions = of([{ epoch: 217_000_000, firstRevision: 1, nonce: 0 }], 10);

  revisions.begin({ epoch: 217_000_009, firstRevision: 11, nonce: 3 });
  revisions.publish(11);

  t.is(revisions.epoch, 217_000_009);
  t.is(revisions.format(10), '2170000000000000010');
  t.is(revisions.format(11), '2170000090000000004');
  t.deepEqual(revisions.locate('2170000090000000004'), { kind: 'ours', revision: 11 });
});

test('the next epoch follows the clock or the last epoch, whichever is higher, plus a random step', (t) => {
  const nowMs = Date.UTC(2026, 10, 22);
  const seconds = (nowMs - Date.UTC(2020, 0, 1)) / 1000;
  const year = (full: number): number => Date.UTC(full, 5, 1);
  const [least, most] = [() => 0, () => 0.999_999_999];
  const cases: [string, number, number, () => number, number][] = [
    ['at birth', 0, nowMs, least, seconds],
    ['at birth, by chance', 0, nowMs, most, seconds + 9_999],
    ['after an earlier life', seconds - 86_400, nowMs, least, seconds],
    ['in the second of the life before', seconds, nowMs, least, seconds + 1],
    ['a clock that is years behind', seconds, year(2021), most, seconds + 10_000],
    ['a clock that has not begun', seconds, 0, least, seconds + 1],
    ['at birth, with a clock that has not begun', 0, 0, least, 100_000_000],
    ['a clock that is years ahead', seconds, year(2040), least, (year(2040) - Date.UTC(2020, 0, 1)) / 1000],
    ['a clock beyond 2045 counts as none', seconds, year(2046), least, seconds + 1],
    ['beyond the clock’s part steps are small', 800_000_000, nowMs, most, 800_000_100],
  ];
  for (const [title, last, at, random, expected] of cases) t.is(nextEpoch(last, { nowMs: at, random }), expected, title);
});

test('the last epoch and any count stay below 2^63, and after it there is none', (t) => {
  const parts = { nowMs: 0, random: () => 0 };

  const last = nextEpoch(922_337_201, parts);

  t.true(BigInt(of([{ epoch: last, firstRevision: 1, nonce: 0 }]).format(9_999_999_999)) < 2n ** 63n);
  t.throws(() => nextEpoch(last, parts), { message: /used up its epochs/ });
});

test('a nonce leaves nine tenths of the counts, and an epoch ends a commit before its counts do', (t) => {
  const nonce = nextNonce({ random: () => 0.999_999_999_999 });

  t.is(nonce, 999_999_999);
  t.false(isUsedUp({ epoch: 1, firstRevision: 101, nonce }, 8_000_000_000));
  t.false(isUsedUp({ epoch: 1, firstRevision: 101, nonce: 0 }, 9_998_999_999 + 100));
  t.true(isUsedUp({ epoch: 1, firstRevision: 101, nonce: 0 }, 9_999_000_000 + 100));
});
