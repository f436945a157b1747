/**
 * Scans a message before msgpackr reads it, and refuses everything that frames do not use. msgpackr
 * trusts lengths, recurses as deep as a message nests and supports types that run code. This scan
 * trusts nothing, and allocates no memory for lengths that a message declares.
 *
 * Accepted: nil, booleans, whole numbers from 0 to 2^53 - 1 in any encoding, texts in valid UTF-8,
 * bytes, arrays. Refused: maps, extensions, negative numbers and fractions.
 *
 * Bounds: depthMax nested arrays, valuesMax values, no length beyond the end of the message. The
 * content of bytes is skipped.
 */
import { isUtf8 } from 'node:buffer';
import { BadFrame } from './bad-frame.js';

/** A frame needs 4: the frame, a list, a member of the list, a slice. */
const depthMax = 8;
/**
 * A report on the maximum number of slices has 100,007 values. A message of only empty arrays takes
 * at most a few MiB of memory.
 */
const valuesMax = 150_000;
/** For texts up to this length a loop is cheaper than a call into native code. */
const loopedBytesMax = 64;

export function checkShape(bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  /** The number of missing members of each open array, except the innermost. */
  const outer: number[] = [];
  let missing = 1;
  let at = 0;

  for (let values = 1; ; values += 1) {
    if (values > valuesMax) throw new BadFrame(`the frame has more than ${valuesMax} values`);
    if (at >= bytes.length) throw endsEarly();
    const type = view.getUint8(at);
    at += 1;
    missing -= 1;

    const width = arrayWidths[type] ?? 0;
    if (width > 0) {
      if (outer.length >= depthMax) throw new BadFrame(`the frame nests arrays deeper than ${depthMax}`);
      outer.push(missing);
      missing = width === 1 ? type & 0x0f : lengthAt(view, at, width - 1);
      at += width - 1;
      if (missing > bytes.length - at) throw endsEarly();
    } else {
      at = afterScalar(bytes, view, { type, at });
    }

    while (missing === 0) {
      const above = outer.pop();
      if (above === undefined) return checkEnd(at, bytes.length);
      missing = above;
    }
  }
}

/** By type: the bytes of an array's header; 0 if the type is not an array. */
const arrayWidths = Uint8Array.from({ length: 256 }, (_, type) => {
  if (type >= 0x90 && type <= 0x9f) return 1;
  if (type === 0xdc) return 3;
  return type === 0xdd ? 5 : 0;
});

function checkEnd(at: number, length: number): void {
  if (at < length) throw new BadFrame('bytes follow the end of the frame');
}

/** Returns the offset behind the value whose type is at `at - 1`. */
function afterScalar(bytes: Uint8Array, view: DataView, { type, at }: { type: number; at: number }): number {
  if (type < 0x80) return at;
  if (type >= 0xa0 && type <= 0xbf) return afterText(bytes, at, type & 0x1f);
  switch (type) {
    case 0xc0:
    case 0xc2:
    case 0xc3:
      return at;
    case 0xc4:
      return afterBytes(bytes, at + 1, lengthAt(view, at, 1));
    case 0xc5:
      return afterBytes(bytes, at + 2, lengthAt(view, at, 2));
    case 0xc6:
      return afterBytes(bytes, at + 4, lengthAt(view, at, 4));
    case 0xcc:
      return afterBytes(bytes, at, 1);
    case 0xcd:
      return afterBytes(bytes, at, 2);
    case 0xce:
      return afterBytes(bytes, at, 4);
    case 0xcb:
    case 0xcf:
      return afterWideNumber(bytes, view, { type, at });
    case 0xd9:
      return afterText(bytes, at + 1, lengthAt(view, at, 1));
    case 0xda:
      return afterText(bytes, at + 2, lengthAt(view, at, 2));
    case 0xdb:
      return afterText(bytes, at + 4, lengthAt(view, at, 4));
    default:
      throw new BadFrame(`the frame has a value of the MessagePack type 0x${type.toString(16)}, which frames do not use`);
  }
}

function lengthAt(view: DataView, at: number, width: number): number {
  if (width > view.byteLength - at) throw endsEarly();
  if (width === 1) return view.getUint8(at);
  return width === 2 ? view.getUint16(at) : view.getUint32(at);
}

function afterBytes(bytes: Uint8Array, at: number, length: number): number {
  if (length > bytes.length - at) throw endsEarly();
  return at + length;
}

function afterText(bytes: Uint8Array, at: number, length: number): number {
  const end = afterBytes(bytes, at, length);
  let ascii = at;
  if (length <= loopedBytesMax) while (ascii < end && (bytes[ascii] ?? 0) < 0x80) ascii += 1;
  if (ascii < end && !isUtf8(bytes.subarray(ascii, end))) throw new BadFrame('the frame has a string that is not UTF-8');
  return end;
}

function afterWideNumber(bytes: Uint8Array, view: DataView, { type, at }: { type: number; at: number }): number {
  const end = afterBytes(bytes, at, 8);
  const value = type === 0xcf ? Number(view.getBigUint64(at)) : view.getFloat64(at);
  // The sign is read from the bytes, because -0 is not less than 0.
  const negative = type === 0xcb && view.getUint8(at) >= 0x80;
  if (negative || !Number.isSafeInteger(value)) throw new BadFrame('the frame has a number that is not an integer from 0 to 2^53 - 1');
  return end;
}

function endsEarly(): BadFrame {
  return new BadFrame('the frame ends early');
}
