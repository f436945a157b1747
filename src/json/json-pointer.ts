/** Where a member stands in a JSON tree: RFC 6901. `[]` is the whole tree. */
export type JsonPointer = readonly string[];

/** A pointer, or undefined when the text is not one: it must be empty or begin with '/', and '~' only begins ~0 and ~1. */
export function parseJsonPointer(text: string): JsonPointer | undefined {
  if (text === '') return [];
  if (!text.startsWith('/') || /~(?![01])/.test(text)) return undefined;
  return text
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}
