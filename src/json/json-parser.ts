/**
 * Parses JSON text to a tree: strict RFC 8259, lossless (json-tree.ts T1–T4), in one pass with an
 * explicit stack.
 *
 * Refusals have the words of Go's encoding/json, which clients of Kubernetes know. As in Go, a
 * repeated member has its last value, unless the caller refuses repeated members. At most
 * `depthMax` arrays and objects may be open at once; the default is Go's 10,000. Half a surrogate
 * pair is kept, unless the caller wants U+FFFD, as in Go.
 */
import { badRequest, Refused } from '../domain/errors.js';
import type { JsonTree } from './json-tree.js';
import { nestingMax } from './object-text.js';
import { attempt } from '../domain/parsed.js';
import type { Parsed } from '../domain/parsed.js';

type Options = Readonly<{ depthMax?: number; duplicates?: 'last' | 'refused'; surrogates?: 'kept' | 'replaced' }>;

export function parseJson(input: string | Uint8Array, options: Options = {}): Parsed<JsonTree> {
  const { depthMax = nestingMax, duplicates = 'last', surrogates = 'kept' } = options;
  return attempt(() => new JsonParser(typeof input === 'string' ? input : decode(input), { depthMax, duplicates, surrogates }).parse());
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Refused(badRequest('the text is not valid UTF-8'));
  }
}

type Open = JsonTree[] | Map<string, JsonTree>;

const numberPattern = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
const wordPattern = /true|false|null/y;
const spacePattern = /[ \t\n\r]*/y;
const escapePattern = /["\\/bfnrt]|u[0-9a-fA-F]{4}/y;
const loneSurrogate = /\p{Surrogate}/gu;
const quote = 0x22;
const backslash = 0x5c;
const firstPrintable = 0x20;

class JsonParser {
  readonly #text: string;
  readonly #depthMax: number;
  readonly #refusesDuplicates: boolean;
  readonly #replacesSurrogates: boolean;
  #at = 0;
  readonly #open: Open[] = [];
  /** For each open object, the innermost last: the name whose value follows. */
  readonly #names: string[] = [];

  constructor(text: string, { depthMax, duplicates, surrogates }: Required<Options>) {
    this.#text = text;
    this.#depthMax = depthMax;
    this.#refusesDuplicates = duplicates === 'refused';
    this.#replacesSurrogates = surrogates === 'replaced';
  }

  parse(): JsonTree {
    for (;;) {
      let value = this.#begin();
      while (value !== undefined) {
        const container = this.#open.at(-1);
        if (container === undefined) return this.#end(value);
        value = this.#place(container, value);
      }
    }
  }

  /**
   * Returns a complete value, or undefined if a container was opened and its first value follows.
   */
  #begin(): JsonTree | undefined {
    this.#skipSpace();
    switch (this.#text[this.#at]) {
      case '[':
        return this.#openContainer([], ']');
      case '{':
        return this.#openContainer(new Map(), '}');
      case '"':
        return this.#string();
      case 't':
      case 'f':
      case 'n':
        return this.#word();
      default:
        return this.#number();
    }
  }

  #openContainer(container: Open, close: string): JsonTree | undefined {
    this.#at++;
    if (this.#open.length === this.#depthMax) throw refusal('exceeded max depth');
    this.#skipSpace();
    if (this.#text[this.#at] === close) {
      this.#at++;
      return container;
    }
    this.#open.push(container);
    if (container instanceof Map) this.#name();
    return undefined;
  }

  /** Adds a value to the innermost container. Returns the container if the value completes it. */
  #place(container: Open, value: JsonTree): JsonTree | undefined {
    const isObject = container instanceof Map;
    if (isObject) this.#placeMember(container, this.#names.pop() as string, value);
    else container.push(value);

    this.#skipSpace();
    const next = this.#text[this.#at];
    if (next === ',') {
      this.#at++;
      if (isObject) this.#name();
      return undefined;
    }
    if (next !== (isObject ? '}' : ']')) throw this.#unexpected(isObject ? 'after object key:value pair' : 'after array element');
    this.#at++;
    return this.#open.pop();
  }

  #placeMember(container: Map<string, JsonTree>, name: string, value: JsonTree): void {
    if (this.#refusesDuplicates && container.has(name))
      throw refusal(`strict decoding error: ${strictCause('duplicate', this.#pathTo(name))}`);
    container.set(name, value);
  }

  /** The path of a member of the innermost object, as Kubernetes writes it: spec.items[0].name */
  #pathTo(name: string): string {
    const names = this.#names.values();
    const outer = this.#open
      .slice(0, -1)
      .map((container) => (container instanceof Map ? `.${names.next().value}` : `[${container.length}]`));
    return `${outer.join('')}.${name}`.replace(/^\./, '');
  }

  #name(): void {
    this.#skipSpace();
    if (this.#text[this.#at] !== '"') throw this.#unexpected('looking for beginning of object key string');
    this.#names.push(this.#string());
    this.#skipSpace();
    if (this.#text[this.#at] !== ':') throw this.#unexpected('after object key');
    this.#at++;
  }

  #end(value: JsonTree): JsonTree {
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#unexpected('after top-level value');
    return value;
  }

  #string(): string {
    const start = this.#at++;
    let escaped = false;
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code === quote) break;
      if (Number.isNaN(code) || code < firstPrintable) throw this.#unexpected('in string literal');
      this.#at++;
      if (code !== backslash) continue;
      escaped = true;
      if (this.#match(escapePattern) === undefined) throw this.#unexpected('in string escape code');
    }
    this.#at++;
    if (!escaped) return this.#text.slice(start + 1, this.#at - 1);
    // The literal is valid already; JSON.parse only decodes its escapes.
    const text = JSON.parse(this.#text.slice(start, this.#at)) as string;
    return this.#replacesSurrogates ? text.replaceAll(loneSurrogate, '\ufffd') : text;
  }

  #word(): JsonTree {
    const word = this.#match(wordPattern);
    if (word === undefined) throw this.#unexpected('looking for beginning of value');
    return word === 'null' ? null : word === 'true';
  }

  #number(): JsonTree {
    const number = this.#match(numberPattern);
    if (number === undefined) throw this.#unexpected('looking for beginning of value');
    return { number };
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const text = pattern.exec(this.#text)?.[0];
    if (text !== undefined) this.#at += text.length;
    return text;
  }

  #skipSpace(): void {
    // Compact text has no white space, so this comparison mostly avoids the pattern.
    if (this.#text.charCodeAt(this.#at) <= firstPrintable) this.#match(spacePattern);
  }

  #unexpected(where: string): Refused {
    const character = this.#text[this.#at];
    if (character === undefined) return refusal('unexpected end of JSON input');
    return refusal(`invalid character ${formatCharacter(character)} ${where}`);
  }
}

function refusal(message: string): Refused {
  return new Refused(badRequest(message));
}

/** Quotes a character as Go does in its messages. */
function formatCharacter(character: string): string {
  if (character === "'") return `'\\''`;
  if (character === '"') return `'"'`;
  return `'${JSON.stringify(character).slice(1, -1)}'`;
}

const pathCharactersMax = 256;

/**
 * Why a strict write is refused, or another write gets a warning, in Kubernetes' words. Shows at
 * most `pathCharactersMax` of a path.
 */
export function strictCause(flaw: 'duplicate' | 'unknown', path: string): string {
  const shown = path.length > pathCharactersMax ? `${path.slice(0, pathCharactersMax)}...` : path;
  return `${flaw} field ${JSON.stringify(shown)}`;
}
