import { test } from '../../support/test.js';
import { BadFrame } from '../../../src/frames/bad-frame.js';
import { checkShape } from '../../../src/frames/msgpack-shape.js';
import { writeFrame } from '../../../src/frames/frame-codec.js';
import { fastestMs } from '../../support/fastest.js';
import { aPut, someFrames } from '../../support/frames/some-frames.js';

const taken: readonly [string, string][] = [
  ['nil', 'c0'],
  ['booleans', '92c2c3'],
  ['whole numbers in every width', '9600cc80cd0100ce00010000cf001fffffffffffff7f'],
  ['a whole number as a float', 'cb433fffffffffffff'],
  ['zero as a float', 'cb0000000000000000'],
  ['texts in every width', '94a161d90162da000163db0000000164'],
  ['a text beyond ASCII', 'a5' + Buffer.from('grün').toString('hex')],
  ['bytes in every width', '93c40100c5000101c60000000102'],
  ['arrays in every width', '9390dc0001c0dd00000001c0'],
  ['arrays as deep as they may be', '91'.repeat(7) + '90'],
];

const refused: readonly [string, string, RegExp][] = [
  ['nothing', '', /ends early/],
  ['an array of 4 G members', 'ddffffffff', /ends early/],
  ['an array of 4 G members with some there', 'ddffffffff' + 'c0'.repeat(64), /ends early/],
  ['an array of 65,535 members that are not there', 'dcffff00', /ends early/],
  ['a map of 4 G members', 'dfffffffff', /type 0xdf/],
  ['an empty map', '80', /type 0x80/],
  ['a map with __proto__', '81a95f5f70726f746f5f5f01', /type 0x81/],
  ['a map of 16 bits', 'de0000', /type 0xde/],
  ['arrays nested too deep', '91'.repeat(9) + 'c0', /nests arrays deeper than 8/],
  ['arrays nested 100,000 deep', '91'.repeat(100_000) + 'c0', /nests arrays deeper than 8/],
  ['the type that is never used', 'c1', /type 0xc1/],
  ['a record of msgpackr', 'd47240', /type 0xd4/],
  ['a date', 'd6ff00000000', /type 0xd6/],
  ['an error of msgpackr', '91d46500', /type 0xd4/],
  ['a regular expression of msgpackr', 'd4780092a0a0', /type 0xd4/],
  ['an extension of 4 GiB', 'c9ffffffff01', /type 0xc9/],
  ['a float of 32 bits', 'ca3f800000', /type 0xca/],
  ['a negative fixint', 'ff', /type 0xff/],
  ['a negative integer', 'd0ff', /type 0xd0/],
  ['a signed integer of 64 bits', 'd30000000000000001', /type 0xd3/],
  ['an integer above 2^53 - 1', 'cf0020000000000000', /2\^53/],
  ['the largest integer', 'cfffffffffffffffff', /2\^53/],
  ['a fraction', 'cb3fe0000000000000', /2\^53/],
  ['a negative float', 'cbbff0000000000000', /2\^53/],
  ['a negative zero', 'cb8000000000000000', /2\^53/],
  ['not a number', 'cb7ff8000000000000', /2\^53/],
  ['infinity', 'cb7ff0000000000000', /2\^53/],
  ['a float above 2^53 - 1', 'cb4340000000000000', /2\^53/],
  ['a text longer than the message', 'dbffffffff61', /ends early/],
  ['bytes longer than the message', 'c6ffffffff00', /ends early/],
  ['bytes longer than the message by one', 'c4020a', /ends early/],
  ['a text with a byte of its own', 'a1ff', /not UTF-8/],
  ['an overlong text', 'a2c080', /not UTF-8/],
  ['a surrogate', 'a3eda080', /not UTF-8/],
  ['a text cut within a character', 'a1c3', /not UTF-8/],
  ['a long text that is broken at its end', 'd9ff' + '61'.repeat(254) + '80', /not UTF-8/],
  ['bytes behind the end', 'c0c0', /bytes follow the end/],
  ['bytes behind an array', '91c000', /bytes follow the end/],
  ['more values than any frame has', 'dd000249f0' + '00'.repeat(150_000), /more than 150000 values/],
];

for (const [name, hex] of taken) {
  test(`the shape of a frame may have ${name}`, (t) => {
    t.notThrows(() => checkShape(Buffer.from(hex, 'hex')));
  });
}

for (const [name, hex, message] of refused) {
  test(`the shape of a frame may not have ${name}`, (t) => {
    t.throws(() => checkShape(Buffer.from(hex, 'hex')), { instanceOf: BadFrame, message });
  });
}

test('a frame that is cut at any byte is refused', (t) => {
  for (const frame of someFrames) {
    const bytes = writeFrame(frame);
    t.notThrows(() => checkShape(bytes));
    for (let length = 0; length < bytes.length; length += 1)
      t.throws(() => checkShape(bytes.subarray(0, length)), { instanceOf: BadFrame });
  }
});

test('bytes before a message in its buffer are ignored', (t) => {
  const bytes = Buffer.concat([Buffer.alloc(7, 0xc1), writeFrame(aPut()), Buffer.alloc(7, 0xc1)]);

  t.notThrows(() => checkShape(bytes.subarray(7, bytes.length - 7)));
});

test('checking the shape skips bodies: a frame of 256 KiB takes less than 0.2 ms', (t) => {
  const body = Buffer.alloc(2560, 0x61);
  const { objects } = aPut();
  const bytes = writeFrame(aPut({ objects: Array.from({ length: 100 }, () => objects.map((object) => ({ ...object, body }))).flat() }));
  t.true(bytes.length > 250_000);

  t.true(fastestMs(() => checkShape(bytes), 200) < 0.2);
});
