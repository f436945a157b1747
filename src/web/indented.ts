/** JSON as people read it. */
const indentSpaces = 2;
/** Deeper text is for programs: 10,000 levels would grow a hundredfold. */
const indentedDepthMax = 32;

/** Puts in space between tokens, and nothing else: numbers and names stay as they are. */
export function indented(bytes: Uint8Array): Buffer {
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
  let out = '';
  let depth = 0;
  const line = (): string => (depth > indentedDepthMax ? '' : `\n${' '.repeat(depth * indentSpaces)}`);
  for (const [token] of source.matchAll(/"(?:[^"\\]|\\.)*"|[^\s"{}[\],:]+|\{\s*\}|\[\s*\]|[{}[\],:]/g)) {
    if (token === '{' || token === '[') {
      depth += 1;
      out += token + line();
    } else if (token === '}' || token === ']') {
      const isInline = depth > indentedDepthMax;
      depth -= 1;
      out += (isInline ? '' : line()) + token;
    } else if (token === ',') out += token + line();
    else out += token === ':' ? ': ' : token;
  }
  return Buffer.from(`${out}\n`);
}
