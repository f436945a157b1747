/**
 * Converts YAML to and from the lossless tree, for request bodies and for answers to `Accept:
 * application/yaml`.
 *
 * The `yaml` library reads syntax only (its failsafe schema); yaml-scalar.ts decides what scalars
 * mean. The library's defaults are not safe for untrusted text, so:
 *
 * Y1 At most 200 collections are open at once, checked token by token. With deeper text the library
 *    would exhaust the stack. If V8 compiles a regular expression when the stack is nearly used up,
 *    the process aborts, and no `catch` helps.
 * Y2 Aliases may add 3 MiB of text, which stops a "billion laughs" attack early. An alias shares
 *    its anchor's tree.
 * Y3 One document; no tags but YAML's own for JSON's types. Keys become strings. A repeated key
 *    has its last value (as in goyaml), or is refused if the caller asks for that. Text that Go's
 *    reader would split into other lines than the library does is refused, and so is text that the
 *    library would ignore.
 * Y4 parseYaml reads the output of formatYaml back as the same tree. formatYaml writes levels
 *    beyond 64 as JSON, which is YAML: indentation would grow with the square of the depth. YAML
 *    cannot write half of a surrogate pair, so a caller of formatYaml first replaces such halves
 *    (`surrogates` in json-parser.ts).
 */
import { Composer, isAlias, isMap, isScalar, isSeq, Lexer, Parser, Scalar } from 'yaml';
import type { CST, Document, ParsedNode, YAMLMap } from 'yaml';
import { badRequest, Refused } from '../domain/errors.js';
import { formatJson, isJsonArray, isJsonNumber, isJsonObject, measureJson } from './json-tree.js';
import type { JsonObject, JsonTree } from './json-tree.js';
import { attempt } from '../domain/parsed.js';
import type { Parsed } from '../domain/parsed.js';
import { escapeUnprintable, formatScalar, resolvePlain } from './yaml-scalar.js';

const depthMax = 200;
const aliasedCharactersMax = 3 * 1024 * 1024;
/** Messages quote names, or the library's messages. */
const messageCharactersMax = 512;

/** Characters that YAML allows only as an escape. */
const unprintable = /[^\P{Cc}\t\n\r\u0085]|[\ufffe\uffff]/u;
/**
 * Go reads these as line breaks, and ignores a byte order mark at the beginning of a line. The
 * library reads both as text.
 */
const ambiguous = /\r(?!\n)|[\u0085\u2028\u2029]|(?!^)\ufeff/u;
/**
 * The library ends a quoted text at a line that is less indented. It then checks only whether the
 * last character is a quote, which may be an escaped one. These patterns match only closed texts.
 */
const wholeQuotes: ReadonlyMap<string, RegExp> = new Map([
  ['single-quoted-scalar', /^'(?:[^']|'')*'$/],
  ['double-quoted-scalar', /^"(?:[^"\\]|\\[^])*"$/],
]);
const loneSurrogate = /\p{Surrogate}/u;

type Options = Readonly<{ duplicates?: 'last' | 'refused' }>;

export function parseYaml(text: string, { duplicates = 'last' }: Options = {}): Parsed<JsonTree> {
  return attempt(() => {
    if (unprintable.test(text)) throw bad('control characters are not allowed');
    if (ambiguous.test(text)) throw bad('each line must end with LF or CRLF, and a byte order mark may stand only at the beginning');
    const [document, second] = documentsOf(text);
    if (document === undefined) return null;
    if (second !== undefined) throw bad('more than one document');
    return new Reading(duplicates === 'refused').treeOf(document.contents);
  });
}

export function formatYaml(tree: JsonTree): string {
  const lines: string[] = [];
  if (isBlock(tree)) writeBlock(lines, tree, { lead: '', pad: '', depth: 1 });
  else lines.push(formatInline(tree));
  return `${lines.join('\n')}\n`;
}

function documentsOf(text: string): readonly Document.Parsed[] {
  const composer = new Composer({
    schema: 'failsafe',
    version: '1.2',
    resolveKnownTags: false,
    merge: false,
    uniqueKeys: false,
    strict: true,
    stringKeys: false,
    prettyErrors: false,
    keepSourceTokens: true,
    logLevel: 'silent',
  });
  const documents: Document.Parsed[] = [];
  for (const document of composer.compose(tokensOf(text))) {
    // For an unknown directive the library only warns.
    const error = document.errors[0] ?? document.warnings.find(({ code }) => code === 'BAD_DIRECTIVE');
    if (error !== undefined) throw bad(error.message);
    documents.push(document);
  }
  return documents;
}

/** Throws Refused if the text is too deep for the library (Y1). */
export function* tokensOf(text: string): Generator<CST.Token> {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > depthMax) throw bad('exceeded max depth');
  }
  yield* parser.end();
}

type Node = ParsedNode | null;
type Mapping = YAMLMap.Parsed;

/** One pass in document order: an alias means the last anchor of that name before it. */
class Reading {
  readonly #anchors = new Map<string, JsonTree>();
  readonly #refusesDuplicates: boolean;
  #aliasedCharacters = 0;

  constructor(refusesDuplicates: boolean) {
    this.#refusesDuplicates = refusesDuplicates;
  }

  treeOf(node: Node): JsonTree {
    if (node === null) return null;
    if (isAlias(node)) return this.#aliased(node.source);

    const tree = isMap(node) ? this.#object(node as Mapping) : isSeq(node) ? this.#array(node.items as Node[], node.tag) : scalarOf(node);
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, tree);
    return tree;
  }

  #aliased(anchor: string): JsonTree {
    const tree = this.#anchors.get(anchor);
    if (tree === undefined) throw bad(`unknown anchor '${anchor}' referenced`);
    this.#aliasedCharacters += measureJson(tree, aliasedCharactersMax);
    if (this.#aliasedCharacters > aliasedCharactersMax) throw bad('document contains excessive aliasing');
    return tree;
  }

  #array(items: readonly Node[], tag: string | undefined): JsonTree {
    if (tag !== undefined && tag !== coreTag('seq')) throw unknownTag(tag);
    return items.map((item) => this.treeOf(item));
  }

  #object(node: Mapping): JsonTree {
    if (node.tag !== undefined && node.tag !== coreTag('map')) throw unknownTag(node.tag);
    const members = new Map<string, JsonTree>();
    const merges: JsonTree[] = [];
    for (const { key, value, srcToken } of node.items) {
      // The library ignores text that follows `? key` without a colon.
      if (value === null && srcToken?.value !== undefined) throw bad("did not find expected ':'");
      if (isMergeKey(key)) {
        merges.push(this.treeOf(value));
        continue;
      }
      const name = nameOf(this.treeOf(key));
      if (this.#refusesDuplicates && members.has(name)) throw bad(`key ${JSON.stringify(name)} already set in map`);
      members.set(name, this.treeOf(value));
    }
    for (const source of merges.flatMap((merge) => (isJsonArray(merge) ? merge : [merge]))) mergeMissing(members, source);
    return members;
  }
}

function scalarOf(node: Exclude<ParsedNode, { items: unknown }>): JsonTree {
  if (!isScalar(node)) throw bad('a value without a form');
  const text = textOf(node);
  if (loneSurrogate.test(text)) throw bad('found invalid Unicode character escape code');
  if (node.tag === undefined) return node.type === Scalar.PLAIN ? resolved(text) : text;
  if (node.tag === '!' || node.tag === coreTag('str')) return text;

  const tree = resolved(text);
  if (node.tag !== coreTag(typeOf(tree)) && !(node.tag === coreTag('float') && isJsonNumber(tree))) throw unknownTag(node.tag);
  return tree;
}

/** The library adds a line break at the end of a block scalar if the document has none there. */
function textOf({ value, srcToken }: Scalar.Parsed): string {
  const text = String(value);
  const quoted = wholeQuotes.get(srcToken?.type ?? '');
  if (quoted !== undefined && srcToken !== undefined && !quoted.test(srcToken.source)) throw bad('a quoted string has no closing quote');
  return srcToken?.type === 'block-scalar' && !/\n *$/.test(srcToken.source) ? text.replace(/\n$/, '') : text;
}

function resolved(text: string): JsonTree {
  const tree = resolvePlain(text);
  if (tree === undefined) throw bad(`JSON has no value for ${text}`);
  return tree;
}

function typeOf(tree: JsonTree): string {
  if (isJsonNumber(tree)) return /[.eE]/.test(tree.number) ? 'float' : 'int';
  return tree === null ? 'null' : typeof tree === 'boolean' ? 'bool' : 'str';
}

function nameOf(key: JsonTree): string {
  if (typeof key === 'string') return key;
  if (typeof key === 'boolean') return String(key);
  if (isJsonNumber(key)) return key.number;
  throw bad('a key must be a string, a number or a boolean');
}

function isMergeKey(key: Node): boolean {
  return isScalar(key) && key.type === Scalar.PLAIN && key.tag === undefined && key.value === '<<';
}

function mergeMissing(members: Map<string, JsonTree>, source: JsonTree): void {
  if (!isJsonObject(source)) throw bad('map merge requires map or sequence of maps as the value');
  for (const [name, member] of source) if (!members.has(name)) members.set(name, member);
}

function coreTag(type: string): string {
  return `tag:yaml.org,2002:${type}`;
}

function unknownTag(tag: string): Refused {
  return bad(`the tag ${tag} is not accepted here`);
}

function bad(message: string): Refused {
  return new Refused(badRequest(`error converting YAML to JSON: ${message.slice(0, messageCharactersMax)}`));
}

const blockDepthMax = 64;
const implicitKeyCharactersMax = 1000;
/** A string of compact JSON, with the colon if it is a name; or the text between two strings. */
const jsonPart = /"[^"\\]*(?:\\.[^"\\]*)*":?|[^"]+/gy;

type Block = readonly JsonTree[] | JsonObject;
/**
 * `lead` begins the first line, `pad` the other lines. They differ after "- ", where a collection
 * begins on the same line.
 */
type Indent = Readonly<{ lead: string; pad: string; depth: number }>;

function isBlock(tree: JsonTree): tree is Block {
  return (isJsonArray(tree) && tree.length > 0) || (isJsonObject(tree) && tree.size > 0);
}

function writeBlock(lines: string[], tree: Block, { lead, pad, depth }: Indent): void {
  let start = lead;
  if (isJsonObject(tree)) {
    for (const [name, member] of tree) {
      writeMember(lines, `${start}${formatKey(name, pad)}`, { member, pad, depth });
      start = pad;
    }
    return;
  }
  for (const item of tree) {
    if (isBlock(item) && depth < blockDepthMax) writeBlock(lines, item, { lead: `${start}- `, pad: `${pad}  `, depth: depth + 1 });
    else lines.push(`${start}- ${formatInline(item)}`);
    start = pad;
  }
}

function writeMember(lines: string[], start: string, { member, pad, depth }: { member: JsonTree; pad: string; depth: number }): void {
  if (!isBlock(member) || depth >= blockDepthMax) {
    lines.push(`${start} ${formatInline(member)}`);
    return;
  }
  lines.push(start);
  const below = isJsonArray(member) ? pad : `${pad}  `;
  writeBlock(lines, member, { lead: below, pad: below, depth: depth + 1 });
}

/** A key of over 1,024 characters needs a `? ` before it. */
function formatKey(name: string, pad: string): string {
  const key = formatScalar(name);
  return key.length > implicitKeyCharactersMax ? `? ${key}\n${pad}:` : `${key}:`;
}

function formatInline(tree: JsonTree): string {
  if (typeof tree === 'string') return formatScalar(tree);
  // Match every string, so that no match begins at the end of another string.
  return escapeUnprintable(formatJson(tree)).replaceAll(jsonPart, (text) =>
    text.startsWith('"') && text.endsWith(':') && text.length > implicitKeyCharactersMax ? `? ${text.slice(0, -1)} :` : text,
  );
}
