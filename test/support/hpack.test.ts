import { test } from './test.js';
import { decodeFields, encodeFields, type Field } from './hpack.js';

test('the examples of RFC 7541 are decoded', (t) => {
  t.deepEqual(decodeFields(Buffer.from('828684418cf1e3c2e5f23a6ba0ab90f4ff', 'hex')), [
    [':method', 'GET'],
    [':scheme', 'http'],
    [':path', '/'],
    [':authority', 'www.example.com'],
  ]);
  t.deepEqual(decodeFields(Buffer.from('4803333037580770726976617465', 'hex')), [
    [':status', '307'],
    ['cache-control', 'private'],
  ]);
  t.deepEqual(decodeFields(Buffer.from('6196d07abe941054d444a8200595040b8166e082a62d1bff', 'hex')), [
    ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
  ]);
});

test('encoded headers decode to the same fields, however long they are', (t) => {
  const fields: readonly Field[] = [
    [':path', `/livez?exclude=${'x'.repeat(60_000)}`],
    ['x', ''],
    ['y', 'z'.repeat(127)],
  ];

  t.deepEqual(decodeFields(encodeFields(fields)), fields);
});

test('an entry of a dynamic table is an error, and so is an invalid padding', (t) => {
  t.throws(() => decodeFields(Buffer.from([0xff, 0x00])), { message: /not in the static table/ });
  t.throws(() => decodeFields(Buffer.from([0x00, 0x01, 0x61, 0x81, 0x00])), { message: /invalid padding/ });
});
