/**
 * Finds the spans of a JSON object's top-level members and of the members of `metadata`,
 * `metadata.annotations` and `metadata.labels`. The same pass checks every byte against RFC 8259.
 * It decodes only the names: a body is spliced by its spans and never re-serialised.
 *
 * Bounds: nesting is counted without recursion. Text is refused if it nests deeper than `depthMax`,
 * or has more than `membersMax` members with a span and values within metadata. The caller has
 * checked that the bytes are UTF-8.
 */

/** How deep documents may nest: Go's own bound. */
export const nestingMax = 10_000;

/** The digits of the least number that a float64 rounds to infinity. */
const tooLarge = new TextEncoder().encode(String(2n ** 1024n - 2n ** 970n));
/** Go ignores further digits of an exponent that has reached this. */
const exponentMax = 10_000;

/** A member of an object, as byte offsets: `"name" : value`. */
export type Member = Readonly<{ name: string; keyStart: number; valueStart: number; valueEnd: number }>;

/** The members of one object, and the offsets of its braces; `end` is after the closing one. */
export type Members = Readonly<{ start: number; end: number; list: readonly Member[] }>;

/**
 * An element of `metadata.ownerReferences` or `metadata.managedFields`. `members`: undefined if it
 * is no object.
 */
export type Struct = Readonly<{ list: string; start: number; members: Members | undefined }>;

export type ObjectText = Readonly<{
  bytes: Uint8Array;
  top: Members;
  metadata: Members | undefined;
  annotations: Members | undefined;
  labels: Members | undefined;
  structs: readonly Struct[];
  /** Offset of the first number that is too large for a float64. */
  overflowAt: number | undefined;
  /** Whether there is a line break, which can only be between tokens. */
  hasLineBreaks: boolean;
}>;

/** The text is not the expected JSON object. `message` gives the reason. */
export class NotJson extends Error {}

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const colon = 0x3a;
const comma = 0x2c;
const space = 0x20;
const newline = 0x0a;
const decoder = new TextDecoder();
const knownNamesMax = 1024;
const knownCharactersMax = 64;

/**
 * Names of members by a hash of their bytes. Objects of a type have the same names, and creating
 * these strings is a third of a scan's garbage. This module state is an exception: it only caches a
 * pure function. Junk may fill it; a full map accepts no more names.
 */
const knownNames = new Map<number, string>();

/** Throws NotJson if the bytes are not one JSON object within the bounds. */
export function scanObject(bytes: Uint8Array, depthMax: number, membersMax = Infinity): ObjectText {
  const scanner = new Scanner(bytes, depthMax, membersMax);
  const start = scanner.skipSpace(0);
  let metadata: Members | undefined;
  let annotations: Members | undefined;
  let labels: Members | undefined;
  let structs: Struct[] = [];
  const top = scanner.members(start, 1, (name, at) => {
    if (name !== 'metadata' || bytes[at] !== openBrace) return undefined;
    annotations = undefined;
    labels = undefined;
    structs = [];
    metadata = scanner.members(at, 2, (inner, innerAt) => {
      if ((inner === 'ownerReferences' || inner === 'managedFields') && bytes[innerAt] === openBracket)
        return scanner.structs(inner, innerAt, structs);
      if ((inner !== 'annotations' && inner !== 'labels') || bytes[innerAt] !== openBrace) return undefined;
      const found = scanner.members(innerAt, 3, () => undefined);
      if (inner === 'annotations') annotations = found;
      else labels = found;
      return found.end;
    });
    return metadata.end;
  });
  const end = scanner.skipSpace(top.end);
  if (end !== bytes.length) scanner.fail(end, 'after top-level value');
  const { overflowAt, hasLineBreaks } = scanner;
  return { bytes, top, metadata, annotations, labels, structs, overflowAt, hasLineBreaks };
}

/** The member of that name. If repeated, it is the last one, which JSON readers use. */
export function member(members: Members | undefined, name: string): Member | undefined {
  return members?.list.findLast((candidate) => candidate.name === name);
}

export function valueText(bytes: Uint8Array, { valueStart, valueEnd }: Member): string {
  return decoder.decode(bytes.subarray(valueStart, valueEnd));
}

export function memberValue(bytes: Uint8Array, members: Members | undefined, name: string): unknown {
  const found = member(members, name);
  return found === undefined ? undefined : JSON.parse(valueText(bytes, found));
}

/** The member's value if it is a string. */
export function memberText(bytes: Uint8Array, members: Members | undefined, name: string): string | undefined {
  const value = memberValue(bytes, members, name);
  return typeof value === 'string' ? value : undefined;
}

class Scanner {
  readonly #bytes: Uint8Array;
  readonly #nestingMax: number;
  readonly #membersMax: number;
  hasLineBreaks = false;
  overflowAt: number | undefined;
  #members = 0;

  constructor(bytes: Uint8Array, nestingMax: number, membersMax: number) {
    this.#bytes = bytes;
    this.#nestingMax = nestingMax;
    this.#membersMax = membersMax;
  }

  fail(at: number, where: string): never {
    const byte = this.#bytes[at];
    if (byte === undefined) throw new NotJson('unexpected end of JSON input');
    const shown = byte > 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`;
    throw new NotJson(`invalid character '${shown}' ${where} (byte ${at})`);
  }

  skipSpace(at: number): number {
    const bytes = this.#bytes;
    let i = at;
    let byte = bytes[i];
    while (byte === space || byte === 0x09) byte = bytes[++i];
    if (byte !== newline && byte !== 0x0d) return i;
    this.hasLineBreaks = true;
    do byte = bytes[++i];
    while (byte === space || byte === newline || byte === 0x09 || byte === 0x0d);
    return i;
  }

  /** Reads the object that opens at `at`. `descend` may read a value itself and return its end. */
  members(at: number, depth: number, descend: (name: string, at: number) => number | undefined): Members {
    const bytes = this.#bytes;
    if (bytes[at] !== openBrace) this.fail(at, 'looking for beginning of object');
    const list: Member[] = [];
    let i = this.skipSpace(at + 1);
    if (bytes[i] === closeBrace) return { start: at, end: i + 1, list };
    for (;;) {
      const keyStart = i;
      const keyEnd = this.#string(i, 'looking for beginning of object key string');
      i = this.skipSpace(keyEnd);
      if (bytes[i] !== colon) this.fail(i, 'after object key');
      const valueStart = this.skipSpace(i + 1);
      const name = this.#name(keyStart, keyEnd);
      const valueEnd = descend(name, valueStart) ?? this.#value(valueStart, depth);
      list.push({ name, keyStart, valueStart, valueEnd });
      this.#count(1);
      i = this.skipSpace(valueEnd);
      if (bytes[i] === closeBrace) return { start: at, end: i + 1, list };
      if (bytes[i] !== comma) this.fail(i, 'after object key:value pair');
      i = this.skipSpace(i + 1);
    }
  }

  /**
   * Returns the end of a list in metadata, an array that opens at `at`, and adds its elements to
   * `found`.
   */
  structs(list: string, at: number, found: Struct[]): number {
    const bytes = this.#bytes;
    const depth = 3;
    let i = this.skipSpace(at + 1);
    if (bytes[i] === closeBracket) return i + 1;
    for (;;) {
      this.#count(1);
      const members = bytes[i] === openBrace ? this.members(i, depth + 1, () => undefined) : undefined;
      found.push({ list, start: i, members });
      i = this.skipSpace(members?.end ?? this.#value(i, depth));
      if (bytes[i] === closeBracket) return i + 1;
      if (bytes[i] !== comma) this.fail(i, 'after array element');
      i = this.skipSpace(i + 1);
    }
  }

  #count(members: number): void {
    this.#members += members;
    if (this.#members > this.#membersMax)
      throw new NotJson(`more than ${this.#membersMax} members, labels, annotations and values in metadata`);
  }

  /** Most names are short, ASCII and known already. */
  #name(start: number, end: number): string {
    const bytes = this.#bytes;
    let hash = end - start;
    for (let i = start + 1; i < end - 1; i++) {
      const byte = bytes[i] ?? 0;
      if (byte === backslash || byte >= 0x80) return JSON.parse(decoder.decode(bytes.subarray(start, end))) as string;
      hash = (Math.imul(hash, 31) + byte) | 0;
    }
    const known = knownNames.get(hash);
    if (known !== undefined && this.#spells(known, start + 1, end - 1)) return known;
    const name = decoder.decode(bytes.subarray(start + 1, end - 1));
    if (knownNames.size < knownNamesMax && name.length <= knownCharactersMax) knownNames.set(hash, name);
    return name;
  }

  #spells(name: string, start: number, end: number): boolean {
    if (name.length !== end - start) return false;
    for (let i = 0; i < name.length; i++) if (this.#bytes[start + i] !== name.charCodeAt(i)) return false;
    return true;
  }

  /** The end of the string that begins at `at`. */
  #string(at: number, where: string): number {
    const bytes = this.#bytes;
    if (bytes[at] !== quote) this.fail(at, where);
    for (let i = at + 1; ; i++) {
      const byte = bytes[i];
      if (byte === quote) return i + 1;
      if (byte === backslash) i = this.#escape(i);
      else if (byte === undefined || byte < 0x20) this.fail(i, 'in string literal');
    }
  }

  /** The offset of the last byte of the escape that begins at `at`. */
  #escape(at: number): number {
    const byte = this.#bytes[at + 1];
    if (byte === 0x75) {
      for (let i = at + 2; i < at + 6; i++) if (!isHex(this.#bytes[i])) this.fail(i, 'in \\u hexadecimal character escape');
      return at + 5;
    }
    if (byte === undefined || !'"\\/bfnrt'.includes(String.fromCharCode(byte))) this.fail(at + 1, 'in string escape code');
    return at + 1;
  }

  /**
   * The end of the value that begins at `at`. An explicit stack has an entry for each open
   * container: whether it is an object. The largest body is read in one turn of the event loop. So
   * common cases precede others, and no call skips absent white space.
   */
  #value(at: number, depth: number): number {
    const bytes = this.#bytes;
    const openMax = this.#nestingMax - depth;
    const outer: boolean[] = [];
    let open = 0;
    let isObject = false;
    let values = 0;
    let i = at;
    for (;;) {
      values += 1;
      const byte = bytes[i] ?? 0;
      if (byte === quote) i = this.#string(i, '');
      else if (byte >= 0x31 && byte <= 0x39) {
        const start = i;
        let next = bytes[++i] ?? 0;
        while (next >= 0x30 && next <= 0x39) next = bytes[++i] ?? 0;
        if (next !== comma || i - start >= tooLarge.length) i = this.#fraction(start, i);
      } else if (byte === openBrace || byte === openBracket) {
        if (open >= openMax) throw new NotJson(`exceeded max depth of ${this.#nestingMax}`);
        const opensObject = byte === openBrace;
        i += 1;
        if ((bytes[i] ?? 0) <= space) i = this.skipSpace(i);
        if (bytes[i] !== (opensObject ? closeBrace : closeBracket)) {
          outer[open] = isObject;
          open += 1;
          isObject = opensObject;
          if (isObject) i = this.#key(i);
          continue;
        }
        i += 1;
      } else if (byte === 0x74) i = this.#literal(i, 'true');
      else if (byte === 0x66) i = this.#literal(i, 'false');
      else if (byte === 0x6e) i = this.#literal(i, 'null');
      else i = this.#number(i);

      // A value has ended: close the containers that it completes, then read the next value.
      for (;;) {
        if (open === 0) {
          // The values within metadata are decoded later, so they count, too. The first is already
          // counted as the member.
          if (depth > 1) this.#count(values - 1);
          return i;
        }
        if ((bytes[i] ?? 0) <= space) i = this.skipSpace(i);
        if (bytes[i] === comma) {
          let next = bytes[++i] ?? 0;
          if (next === newline) {
            this.hasLineBreaks = true;
            next = bytes[++i] ?? 0;
          }
          if (next <= space) i = this.skipSpace(i);
          if (isObject) i = this.#key(i);
          break;
        }
        if (bytes[i] !== (isObject ? closeBrace : closeBracket))
          this.fail(i, isObject ? 'after object key:value pair' : 'after array element');
        open -= 1;
        isObject = outer[open] ?? false;
        i += 1;
      }
    }
  }

  /** The position after `"key" :`, where its value begins. */
  #key(at: number): number {
    const bytes = this.#bytes;
    let i = this.#string(at, 'looking for beginning of object key string');
    if ((bytes[i] ?? 0) <= space) i = this.skipSpace(i);
    if (bytes[i] !== colon) this.fail(i, 'after object key');
    i += 1;
    return (bytes[i] ?? 0) <= space ? this.skipSpace(i) : i;
  }

  #literal(at: number, word: string): number {
    for (let i = 0; i < word.length; i++) if (this.#bytes[at + i] !== word.charCodeAt(i)) this.fail(at + i, `in literal ${word}`);
    return at + word.length;
  }

  #number(at: number): number {
    const bytes = this.#bytes;
    let i = at;
    if (bytes[i] === 0x2d) i += 1;
    const start = i;
    if (bytes[i] === 0x30) i += 1;
    else i = this.#digits(i, i === at ? 'looking for beginning of value' : 'in numeric literal');
    return this.#fraction(start, i);
  }

  /**
   * Reads the fraction and the exponent of a number, if any; its digits are from `start` to `at`.
   */
  #fraction(start: number, at: number): number {
    const bytes = this.#bytes;
    let i = at;
    let power = at - start;
    if (bytes[i] === 0x2e) i = this.#digits(i + 1, 'after decimal point in numeric literal');
    if (bytes[i] === 0x65 || bytes[i] === 0x45) {
      i += 1;
      const isNegative = bytes[i] === 0x2d;
      if (isNegative || bytes[i] === 0x2b) i += 1;
      let exponent = 0;
      for (const end = this.#digits(i, 'in exponent of numeric literal'); i < end; i++)
        if (exponent < exponentMax) exponent = 10 * exponent + (bytes[i] ?? 0) - 0x30;
      power += isNegative ? -exponent : exponent;
    }
    if (power >= tooLarge.length && this.#overflows(start, power)) this.overflowAt ??= start;
    return i;
  }

  /**
   * Whether the number at `start`, which is less than 10 to `power`, is too large for a float64.
   */
  #overflows(start: number, power: number): boolean {
    const bytes = this.#bytes;
    let compared = 0;
    let zeros = 0;
    for (let i = start; ; i++) {
      const byte = bytes[i];
      if (byte === 0x2e) continue;
      // The number is equal so far, and shorter, so it is less.
      if (!isDigit(byte)) return false;
      if (compared === 0 && byte === 0x30) zeros += 1;
      else if (power - zeros !== tooLarge.length) return power - zeros > tooLarge.length;
      else if (byte !== tooLarge[compared]) return byte > (tooLarge[compared] ?? 0);
      else if ((compared += 1) === tooLarge.length) return true;
    }
  }

  #digits(at: number, where: string): number {
    if (!isDigit(this.#bytes[at])) this.fail(at, where);
    let i = at + 1;
    while (isDigit(this.#bytes[i])) i += 1;
    return i;
  }
}

function isDigit(byte: number | undefined): byte is number {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function isHex(byte: number | undefined): boolean {
  return byte !== undefined && (isDigit(byte) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66));
}
