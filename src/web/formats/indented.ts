/**
 * JSON for people at a terminal. Only white space between tokens is added, so numbers and names
 * stay as they are.
 *
 * Bounds: text that is longer than `indentedFromBytesMax`, or would become longer than
 * `indentedBytesMax`, stays as it is, because indenting it would delay other requests. Text deeper
 * than `depthMax` levels stays on one line: with 10,000 levels, indentation would make the text a
 * hundred times longer.
 */
import { closingQuote } from '../../json/value-count.js';

export const indentedFromBytesMax = 256 * 1024;
const indentedBytesMax = 1024 * 1024;
const depthMax = 32;
const indentSpaces = 2;

const [quote, comma, colon, newline, space] = [0x22, 0x2c, 0x3a, 0x0a, 0x20];

export function indented(json: Buffer): Buffer {
  if (json.length > indentedFromBytesMax) return json;
  // Has room for one token beyond `indentedBytesMax`, so one check of that bound per token is
  // enough.
  const out = Buffer.allocUnsafe(indentedBytesMax + indentedFromBytesMax);
  let to = 0;
  let depth = 0;
  const line = (): void => {
    if (depth > depthMax) return;
    out[to++] = newline;
    out.fill(space, to, to + depth * indentSpaces);
    to += depth * indentSpaces;
  };

  for (let at = 0; at < json.length; at++) {
    if (to > indentedBytesMax) return json;
    const byte = json[at] ?? 0;
    if (byte <= space) continue;
    if (byte === quote) {
      const end = closingQuote(json, at);
      to += json.copy(out, to, at, end + 1);
      at = end;
    } else if (isOpening(byte)) {
      const next = behindSpace(json, at + 1);
      if (isClosing(json[next] ?? 0)) {
        to += json.copy(out, to, at, next + 1);
        at = next;
        continue;
      }
      out[to++] = byte;
      depth += 1;
      line();
    } else if (isClosing(byte)) {
      depth -= 1;
      if (depth < depthMax) line();
      out[to++] = byte;
    } else {
      out[to++] = byte;
      if (byte === comma) line();
      if (byte === colon) out[to++] = space;
    }
  }
  out[to++] = newline;
  return out.subarray(0, to);
}

function behindSpace(json: Buffer, start: number): number {
  let at = start;
  while ((json[at] ?? quote) <= space) at += 1;
  return at;
}

function isOpening(byte: number): boolean {
  return byte === 0x7b || byte === 0x5b;
}

function isClosing(byte: number): boolean {
  return byte === 0x7d || byte === 0x5d;
}
