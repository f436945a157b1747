/**
 * A YAML configuration file as a plain value that remembers its lines, so that a complaint can point at one.
 *
 * YAML 1.2 core schema: `no` and `on` are texts, and a key given twice is an error, never a quiet last-one-wins.
 */
import { LineCounter, isMap, isScalar, parseDocument, type Node } from 'yaml';

export type ConfigDocument = Readonly<{
  value: unknown;
  /** The line, from 1, where the key at `path` stands. */
  lineOf: (path: readonly string[]) => number | undefined;
}>;

/** The text is no YAML; the message says where. */
export class ConfigSyntaxError extends Error {
  readonly line: number | undefined;

  constructor(message: string, line: number | undefined) {
    super(message);
    this.name = 'ConfigSyntaxError';
    this.line = line;
  }
}

/** A configuration names a thing twice at most; more aliases than this are an attack on memory. */
const aliasesMax = 100;

export function parseConfigDocument(text: string): ConfigDocument {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    strict: true,
    uniqueKeys: true,
    prettyErrors: false,
    lineCounter: lines,
  });
  const [error] = document.errors;
  if (error !== undefined) throw new ConfigSyntaxError(error.message, lines.linePos(error.pos[0]).line);

  return {
    value: document.toJS({ maxAliasCount: aliasesMax }),
    lineOf(path) {
      let node: Node | null = document.contents;
      let offset: number | undefined;
      for (const name of path) {
        const pair = isMap(node) ? node.items.find(({ key }) => isScalar(key) && String(key.value) === name) : undefined;
        if (pair === undefined) return undefined;
        offset = isScalar(pair.key) ? pair.key.range?.[0] : undefined;
        node = pair.value as Node | null;
      }
      return offset === undefined ? undefined : lines.linePos(offset).line;
    },
  };
}
