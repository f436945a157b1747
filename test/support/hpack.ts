/**
 * Encodes and decodes HTTP/2 headers (RFC 7541) for a client that must send what no library would.
 * It sends literals that are never indexed. It reads with a dynamic table of length 0, which
 * `RawHttp2` requests in its settings.
 *
 * The Huffman code of RFC 7541 is canonical, so the lengths of the codes define it. Bytes outside
 * ASCII are left out, because no header of ours has them; decoding one throws.
 */
export type Field = readonly [name: string, value: string];

const staticTable: readonly Field[] = (
  ':authority|:method GET|:method POST|:path /|:path /index.html|:scheme http|:scheme https|:status 200|:status 204|:status 206|:status 304|' +
  ':status 400|:status 404|:status 500|accept-charset|accept-encoding gzip, deflate|accept-language|accept-ranges|accept|' +
  'access-control-allow-origin|age|allow|authorization|cache-control|content-disposition|content-encoding|content-language|content-length|' +
  'content-location|content-range|content-type|cookie|date|etag|expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|' +
  'if-unmodified-since|last-modified|link|location|max-forwards|proxy-authenticate|proxy-authorization|range|referer|refresh|retry-after|' +
  'server|set-cookie|strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate'
)
  .split('|')
  .map((entry) => {
    const [name = '', ...value] = entry.split(' ');
    return [name, value.join(' ')];
  });

/** The bytes that have each code length, in the order of their codes. */
const huffmanLengths: readonly (readonly [bits: number, bytes: string])[] = [
  [5, '012aceiost'],
  [6, ' %-./3456789=A_bdfghlmnpru'],
  [7, ':BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz'],
  [8, '&*,;XZ'],
  [10, '!"()?'],
  [11, "'+|"],
  [12, '#>'],
  [13, '\0$@[]~'],
  [14, '^}'],
  [15, '<`{'],
];

const huffman = huffmanCodes();

export function encodeFields(fields: readonly Field[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([name, value]) => [Buffer.from([0x10]), encodeText(Buffer.from(name)), encodeText(Buffer.from(value))]),
  );
}

/** Throws if the block needs a dynamic table or is not a list of fields. */
export function decodeFields(block: Buffer): readonly Field[] {
  const fields: Field[] = [];
  const reader = { block, at: 0 };
  while (reader.at < block.length) {
    const first = block[reader.at] ?? 0;
    if ((first & 0x80) !== 0) fields.push(staticEntry(readInteger(reader, 7)));
    else if ((first & 0xe0) === 0x20) readInteger(reader, 5);
    else {
      const index = readInteger(reader, (first & 0xc0) === 0x40 ? 6 : 4);
      const name = index === 0 ? readText(reader) : staticEntry(index)[0];
      fields.push([name, readText(reader)]);
    }
  }
  return fields;
}

type Reader = { readonly block: Buffer; at: number };

function staticEntry(index: number): Field {
  const entry = staticTable[index - 1];
  if (entry === undefined) throw new Error(`a header refers to entry ${index}, which is not in the static table`);
  return entry;
}

function readInteger(reader: Reader, bits: number): number {
  const max = 2 ** bits - 1;
  let value = (reader.block[reader.at++] ?? 0) & max;
  if (value < max) return value;
  for (let shift = 1; ; shift *= 128) {
    const byte = reader.block[reader.at++] ?? 0;
    value += (byte & 0x7f) * shift;
    if ((byte & 0x80) === 0) return value;
  }
}

function readText(reader: Reader): string {
  const isHuffman = ((reader.block[reader.at] ?? 0) & 0x80) !== 0;
  const length = readInteger(reader, 7);
  const bytes = reader.block.subarray(reader.at, reader.at + length);
  reader.at += length;
  return isHuffman ? decodeHuffman(bytes) : bytes.toString('latin1');
}

function decodeHuffman(bytes: Buffer): string {
  let text = '';
  let code = '';
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit -= 1) {
      code += (byte >> bit) & 1;
      const found = huffman.get(code);
      if (found === undefined) continue;
      text += found;
      code = '';
    }
  }
  if (code.length > 7 || code.includes('0')) throw new Error(`a header ends with ${code}, which is an invalid padding`);
  return text;
}

function huffmanCodes(): ReadonlyMap<string, string> {
  const codes = new Map<string, string>();
  let code = 0;
  let length = 0;
  for (const [bits, bytes] of huffmanLengths) {
    code *= 2 ** (bits - length);
    length = bits;
    for (const byte of bytes) {
      codes.set(code.toString(2).padStart(bits, '0'), byte);
      code += 1;
    }
  }
  return codes;
}

function encodeText(bytes: Buffer): Buffer {
  return Buffer.concat([encodeInteger(bytes.length, 7), bytes]);
}

function encodeInteger(value: number, bits: number): Buffer {
  const max = 2 ** bits - 1;
  if (value < max) return Buffer.from([value]);
  const bytes = [max];
  let rest = value - max;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  return Buffer.from([...bytes, rest]);
}
