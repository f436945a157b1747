/** The place of a value in a JSON tree: RFC 6901. `[]` is the whole tree. */
export type JsonPointer = readonly string[];

/**
 * Undefined if the text is no pointer. A pointer is empty or begins with '/', and '~' only appears
 * in ~0 and ~1.
 */
export function parseJsonPointer(text: string): JsonPointer | undefined {
  if (text === '') return [];
  if (!text.startsWith('/') || /~(?![01])/.test(text)) return undefined;
  return text
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}
