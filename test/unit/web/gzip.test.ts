import { test } from '../../support/test.js';
import { randomBytes } from 'node:crypto';
import { crc32, gunzipSync } from 'node:zlib';
import { appended, Gzip, shiftOf } from '../../../src/web/formats/gzip.js';

function someMemory(): { bytes: number; add: (bytes: number) => void; release: (bytes: number) => void } {
  const memory = {
    bytes: 0,
    add: (bytes: number) => void (memory.bytes += bytes),
    release: (bytes: number) => void (memory.bytes -= bytes),
  };
  return memory;
}

/** The maker of the pieces has taken memory for them. */
async function* taking(pieces: readonly Uint8Array[], memory: { add: (bytes: number) => void }): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) {
    memory.add(piece.length);
    yield piece;
  }
}

async function gather(gzip: Gzip, pieces: readonly Uint8Array[], memory = someMemory()): Promise<readonly Uint8Array[]> {
  const all: Uint8Array[] = [];
  for await (const batch of gzip.stream(taking(pieces, memory), memory)) all.push(...batch);
  return all;
}

function somePieces(): readonly Uint8Array[] {
  const text = Buffer.from(JSON.stringify({ kind: 'APIExport', spec: 'the same again' }).repeat(5_000));
  return [text, randomBytes(300_000), Buffer.alloc(0), Buffer.from(','), text.subarray(1)];
}

test('pieces that are deflated separately form one stream of gzip', async (t) => {
  const gzip = new Gzip();
  const pieces = somePieces();

  for (let count = 0; count <= pieces.length; count += 1) {
    const packed = Buffer.concat(await gather(gzip, pieces.slice(0, count)));
    t.is(Buffer.compare(gunzipSync(packed), Buffer.concat(pieces.slice(0, count))), 0);
  }
});

test('a piece is deflated once for all its receivers', async (t) => {
  const gzip = new Gzip();
  const [shared, other] = somePieces();

  const streams = await Promise.all([gather(gzip, [shared!]), gather(gzip, [other!, shared!])]);
  const later = await gather(gzip, [shared!, other!]);

  t.is(streams[1]?.[2], streams[0]?.[1]);
  t.deepEqual([later[1], later[2]], [streams[0]?.[1], streams[1]?.[1]]);
  t.true(later[1] === streams[0]?.[1] && later[2] === streams[1]?.[1]);
});

test('a piece holds room for its deflated bytes once their length is known', async (t) => {
  const memory = someMemory();

  const packed = await gather(new Gzip(), somePieces(), memory);

  t.is(memory.bytes, Buffer.concat(packed).length);
});

test('an error in the pieces becomes the error of the stream, and the pieces are closed', async (t) => {
  let closed = false;
  async function* failing(): AsyncGenerator<Uint8Array> {
    try {
      yield Buffer.from('one');
      throw new Error('held too long');
    } finally {
      closed = true;
    }
  }

  await t.throwsAsync(
    async () => {
      for await (const batch of new Gzip().stream(failing(), someMemory())) t.true(batch.length > 0);
    },
    { message: 'held too long' },
  );
  t.true(closed);
});

test('the checksum of two joined texts is computed from the checksums of both', (t) => {
  const checksum = (text: Uint8Array) => ({ crc: crc32(text), length: text.length, shift: shiftOf(text.length) });

  for (const [before, after] of [0, 1, 7, 256, 65_537, 300_000].flatMap((a) => [0, 1, 255, 70_001].map((b) => [a, b] as const))) {
    const [first, second] = [randomBytes(before), randomBytes(after)];
    t.deepEqual(appended(checksum(first), checksum(second)), checksum(Buffer.concat([first, second])));
  }
});
