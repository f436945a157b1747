/**
 * How many bytes beside its requests a connection may send as it grows old.
 * test/faults/hostile/unasked-bytes.test.ts tests it over the wire.
 */
import { test } from '../../support/test.js';
import { OverheadBytes, type Traffic } from '../../../src/http/overhead-bytes.js';

const hourMs = 3_600_000;
const mebibyte = 1024 * 1024;
const quiet: Traffic = { wireBytes: 0, bytesRead: 0, bytesWritten: 0, openMs: 0, isHttp: true };

/** Yields a time four times a second. */
function* looks(fromMs: number, untilMs: number): Generator<number> {
  for (let ms = fromMs; ms <= untilMs; ms += 250) yield ms;
}

test('a quiet time gives no credit: an old connection may flood no longer than a new one', (t) => {
  for (const ageMs of [0, hourMs, 24 * hourMs]) {
    const unasked = new OverheadBytes();
    t.false(unasked.isTooMuch({ ...quiet, openMs: ageMs }));
    t.true(unasked.isTooMuch({ ...quiet, wireBytes: mebibyte, openMs: ageMs + 250 }), `around, after ${ageMs} ms`);
    t.true(unasked.isTooMuch({ ...quiet, wireBytes: mebibyte, bytesRead: mebibyte, openMs: ageMs + 500 }), `beside, after ${ageMs} ms`);
  }
});

test('a watch that answers a ping every fifteen seconds stays for days, and so does one that acknowledges what it reads', (t) => {
  const pinged = new OverheadBytes();
  const busy = new OverheadBytes();
  for (let i = 1; i < 20_000; i += 1) {
    const openMs = i * 15_000;
    t.false(pinged.isTooMuch({ ...quiet, wireBytes: i * 39, bytesRead: i * 17, bytesWritten: i * 17, openMs }));
    // 10 MB, with a frame of 13 bytes for each 16 KiB.
    t.false(busy.isTooMuch({ ...quiet, wireBytes: i * 22_400, bytesRead: i * 8_320, bytesWritten: i * 10 * mebibyte, openMs }));
  }
});

test('bytes below the allowed rate may arrive for ever', (t) => {
  const unasked = new OverheadBytes();
  for (const openMs of looks(0, hourMs)) t.false(unasked.isTooMuch({ ...quiet, wireBytes: openMs * 4, openMs }));
});

test('many bytes that the client has read explain few key updates', (t) => {
  const unasked = new OverheadBytes();
  const read = { ...quiet, bytesWritten: 200 * mebibyte, openMs: 1_000 };
  t.false(unasked.isTooMuch(read));
  t.true(unasked.isTooMuch({ ...read, wireBytes: 4 * mebibyte, openMs: 1_250 }));
});
