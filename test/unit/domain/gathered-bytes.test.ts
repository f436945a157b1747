/**
 * Bytes that arrive in pieces and are kept: in order, however they are cut, and in few objects,
 * however short the pieces are.
 */
import fc from 'fast-check';
import { GatheredBytes } from '../../../src/domain/base/gathered-bytes.js';
import { pieces } from '../../support/some-pieces.js';
import { test } from '../../support/test.js';

test('whatever the pieces, all bytes are returned in order, and few objects hold them', (t) => {
  const gathered = new GatheredBytes();
  const law = fc.property(pieces, fc.boolean(), (added, asOne) => {
    for (const each of added) gathered.add(each);
    const { bytes } = gathered;
    const taken = asOne ? [gathered.takeJoined()] : gathered.take();
    return (
      bytes === Buffer.concat(added).length &&
      gathered.bytes === 0 &&
      taken.length <= 3 + bytes / 500 &&
      Buffer.concat(taken).equals(Buffer.concat(added))
    );
  });
  t.notThrows(() => fc.assert(law));

  for (let i = 0; i < 100_000; i += 1) gathered.add(Buffer.from('x'));
  t.true(gathered.take().length < 20);
});

test('bytes that were taken stay unchanged when more are added', (t) => {
  const gathered = new GatheredBytes();
  for (const letter of 'abc') gathered.add(Buffer.from(letter));
  const taken = gathered.takeJoined();
  for (const letter of 'def') gathered.add(Buffer.from(letter));
  t.is(taken.toString(), 'abc');
  t.is(gathered.takeJoined().toString(), 'def');
});

test('bytes taken together with a last piece are that very piece if nothing came before it, else all bytes', (t) => {
  const gathered = new GatheredBytes();
  const last = Buffer.from('last');
  t.is(gathered.takeJoinedWith(last), last);
  gathered.add(Buffer.from('first '));
  t.is(gathered.takeJoinedWith(last).toString(), 'first last');
  t.is(gathered.bytes, 0);
});

test('little is kept of the network buffers from which pieces were cut', (t) => {
  const gathered = new GatheredBytes();
  for (let i = 0; i < 100; i += 1) gathered.add(Buffer.alloc(16_384).subarray(0, 1_025));
  for (const length of [5_000, 20_000]) gathered.add(Buffer.alloc(4 * length).subarray(0, length));
  const { bytes } = gathered;
  const kept = new Set(gathered.take().map(({ buffer }) => buffer));
  const keptBytes = [...kept].reduce((sum, { byteLength }) => sum + byteLength, 0);
  t.true(keptBytes < 1.5 * bytes, `${keptBytes} for ${bytes}`);

  gathered.add(Buffer.alloc(65_536).subarray(0, 1_025));
  t.true(gathered.takeJoined().buffer.byteLength < 4_096);
});
