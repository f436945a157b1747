import fc from 'fast-check';
import { test } from '../../support/test.js';
import { nearest } from '../../../src/config/command-line/nearest.js';
import { formatBytes, formatDuration, parseBytes, parseDurationMs } from '../../../src/config/options/quantity.js';

const durations: readonly [string, number | undefined][] = [
  ['100ms', 100],
  ['1m30s', 90_000],
  ['24h', 86_400_000],
  ['30d', 30 * 86_400_000],
  ['1.5h', 5_400_000],
  ['.5s', 500],
  ['0', 0],
  ['0s', 0],
  ['1h0m0.25s', 3_600_250],
  ['1500us', 2],
  ['60', undefined],
  ['', undefined],
  ['s', undefined],
  ['-1s', undefined],
  ['1s ', undefined],
  ['1 s', undefined],
  ['1S', undefined],
  ['1e3s', undefined],
  ['1s1', undefined],
  ['Infinity', undefined],
];

for (const [text, expected] of durations) {
  test(`the duration ${JSON.stringify(text)} is ${expected ?? 'refused'}`, (t) => t.is(parseDurationMs(text), expected));
}

const amounts: readonly [string, number | undefined][] = [
  ['64MiB', 67_108_864],
  ['3145728', 3_145_728],
  ['1.5KiB', 1536],
  ['1 GB', 1_000_000_000],
  ['0B', 0],
  ['64mib', undefined],
  ['64M', undefined],
  ['0.3B', undefined],
  ['-1', undefined],
  ['', undefined],
  ['9007199254740993', undefined],
  ['MiB', undefined],
];

for (const [text, expected] of amounts) {
  test(`the amount ${JSON.stringify(text)} is ${expected ?? 'refused'}`, (t) => t.is(parseBytes(text), expected));
}

test('no text parses to a quantity that is negative or not a number', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'0123456789.smhdnuBkMGi ') }), (text) => {
      for (const value of [parseDurationMs(text), parseBytes(text)]) t.true(value === undefined || (Number.isFinite(value) && value >= 0));
    }),
  );
});

test('the nearest word is suggested, and none if none is near', (t) => {
  t.is(nearest('bind-adress', ['root-directory', 'bind-address']), 'bind-address');
  t.is(nearest('xyzzy', ['root-directory', 'bind-address']), undefined);
  t.is(nearest('', []), undefined);
});

test('a duration is printed in its two largest units, and never rounded up', (t) => {
  const received: readonly [number, string][] = [
    [0, '0ms'],
    [0.4, '0ms'],
    [999, '999ms'],
    [1_000, '1s'],
    [59_999, '59s'],
    [64_000, '1m4s'],
    [3_600_000, '1h'],
    [7_199_999, '1h59m'],
    [86_400_000 * 3 + 3_600_000 * 4 + 5_000, '3d4h'],
    [86_400_000 * 400, '400d'],
  ];

  for (const [ms, text] of received) t.is(formatDuration(ms), text);
});

test('an amount of bytes is printed in the largest unit that it fills', (t) => {
  t.deepEqual([0, 1_023, 1_024, 30_211, 5 * 2 ** 20, 1.5 * 2 ** 30, 2 ** 50].map(formatBytes), [
    '0 B',
    '1023 B',
    '1.0 KiB',
    '29.5 KiB',
    '5.0 MiB',
    '1.5 GiB',
    '1024.0 TiB',
  ]);
});
