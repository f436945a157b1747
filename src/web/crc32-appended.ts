/**
 * Computes the CRC-32 of two concatenated texts from the checksum of each, as zlib's
 * `crc32_combine` does. Appending n bytes multiplies the checksum before them by x^8n. The factors
 * are polynomials over GF(2) modulo that of CRC-32, with the coefficient of x^0 in the highest bit.
 */
export type Checksum = Readonly<{
  crc: number;
  length: number;
  /** x^8n, where n is `length`. */
  shift: number;
}>;

const modulus = 0xedb88320;
const one = 0x80000000;
const x8 = 0x00800000;

export function appended(first: Checksum, second: Checksum): Checksum {
  return {
    crc: (product(second.shift, first.crc) ^ second.crc) >>> 0,
    length: first.length + second.length,
    shift: product(first.shift, second.shift),
  };
}

/** x^8n, by squaring. */
export function shiftOf(bytes: number): number {
  let [shift, power] = [one, x8];
  for (let left = bytes; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) shift = product(shift, power);
    power = product(power, power);
  }
  return shift;
}

function product(a: number, b: number): number {
  let sum = 0;
  for (let [bit, shifted] = [one, b]; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) sum ^= shifted;
    shifted = (shifted & 1) === 0 ? shifted >>> 1 : (shifted >>> 1) ^ modulus;
  }
  return sum >>> 0;
}
