/** Joins pieces of stored bytes and short ASCII texts, with one allocation and one copy. */
export type Part = string | Uint8Array;

export function lengthOf(parts: readonly Part[]): number {
  let length = 0;
  for (const part of parts) length += part.length;
  return length;
}

export function join(parts: readonly Part[]): Buffer {
  const out = Buffer.allocUnsafeSlow(lengthOf(parts));
  let at = 0;
  for (const part of parts) {
    if (typeof part === 'string') out.write(part, at, 'latin1');
    else out.set(part, at);
    at += part.length;
  }
  return out;
}

/** Makes a part of a text that may not be ASCII. */
export function encode(text: string): Uint8Array {
  return Buffer.from(text);
}
