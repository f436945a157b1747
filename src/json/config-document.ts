/**
 * A YAML configuration file as a plain value, with the line of each key for error messages.
 *
 * YAML 1.2 core schema: `no` and `on` are strings, and a repeated key is an error. Merge keys
 * (`<<`) work, because they do in kubectl, which writes kubeconfigs. A merge key that is not the
 * first of its mapping is refused: kubectl lets it override earlier keys, other readers do not.
 */
import { LineCounter, isAlias, isMap, isScalar, isSeq, parseDocument, visit, type Document, type Node } from 'yaml';
import { tokensOf } from './yaml.js';

export type ConfigDocument = Readonly<{
  value: unknown;
  /**
   * The line, from 1, of the key or list member at `path`, or of its nearest parent in the file.
   */
  lineOf: (path: readonly (string | number)[]) => number;
}>;

/** The text is not YAML; the message says where. */
export class ConfigSyntaxError extends Error {
  readonly line: number | undefined;

  constructor(message: string, line: number | undefined) {
    super(message);
    this.name = 'ConfigSyntaxError';
    this.line = line;
  }
}

/** A configuration uses an anchor twice at most; more aliases than this are an attack on memory. */
const aliasesMax = 100;

export function parseConfigDocument(text: string): ConfigDocument {
  confirmDepth(text);
  const lines = new LineCounter();
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    strict: true,
    uniqueKeys: true,
    merge: true,
    prettyErrors: false,
    lineCounter: lines,
  });
  const [error] = document.errors;
  if (error !== undefined) throw new ConfigSyntaxError(error.message, lines.linePos(error.pos[0]).line);
  visit(document, {
    Pair: (at, { key }) => {
      if (at !== 0 && isScalar(key) && key.source === '<<')
        throw new ConfigSyntaxError('a merge key (<<) must be the first key of its mapping', lines.linePos(key.range?.[0] ?? 0).line);
    },
  });

  return {
    value: document.toJS({ maxAliasCount: aliasesMax }),
    lineOf(path) {
      let node: Node | undefined = document.contents ?? undefined;
      let line = 1;
      for (const step of path) {
        const place = placeOf(step, node, document);
        if (place === undefined) break;
        if (place.offset !== undefined) line = lines.linePos(place.offset).line;
        node = place.value;
      }
      return line;
    },
  };
}

/** Refuses text that is so deep that it would end the process (yaml.ts Y1). */
function confirmDepth(text: string): void {
  const tokens = tokensOf(text);
  try {
    while (tokens.next().done !== true);
  } catch {
    throw new ConfigSyntaxError('nests too deep', undefined);
  }
}

type NodePlace = Readonly<{ offset: number | undefined; value: Node | undefined }>;

function placeOf(step: string | number, node: Node | undefined, document: Document.Parsed): NodePlace | undefined {
  const within = isAlias(node) ? node.resolve(document) : node;
  if (isSeq<Node>(within)) {
    const value = within.items[Number(step)];
    return value === undefined ? undefined : { offset: value.range?.[0], value };
  }
  const pair = isMap<Node, Node | null>(within) ? within.items.find(({ key }) => String(key) === String(step)) : undefined;
  return pair && { offset: pair.key.range?.[0], value: pair.value ?? undefined };
}
