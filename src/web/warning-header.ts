/**
 * The Warning header of an answer, as kube-apiserver writes it. Pure.
 *
 * WARNING-1 Whatever the texts contain, the header can be sent. They quote what a caller has
 *    sent, and the write that they are about may be stored already. Node writes one byte per
 *    character, so the UTF-8 bytes are passed to it as characters.
 *
 * Bounds: a text is cut at `charactersMax`; lines beyond `bytesMax` in all are left out.
 */
const charactersMax = 256;
const bytesMax = 4 * 1024;
/** The characters that Go's unicode.IsPrint rejects, and halves of surrogate pairs. */
const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

export function warningHeader(texts: readonly string[]): readonly string[] {
  const lines: string[] = [];
  let bytes = 0;
  for (const text of texts) {
    const line = formatLine(text.slice(0, charactersMax).replaceAll(unprintable, ''));
    bytes += line.length;
    if (bytes > bytesMax) break;
    lines.push(line);
  }
  return lines;
}

function formatLine(text: string): string {
  return Buffer.from(`299 - ${JSON.stringify(text)}`).toString('latin1');
}
