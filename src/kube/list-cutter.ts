/**
 * Cuts a page of a list into the texts of its items while it arrives, so that memory never holds a
 * whole page. The text around the items is kept, because it has the list's revision and its
 * continue token. API servers write these before or after the items.
 *
 *   {"kind":"…List",… "items":[ {…} , {…} , … ], "metadata":{"resourceVersion":"…","continue":"…"}}
 *   └─ envelope ─────────────┘  └ item ┘          └─ envelope ───────────────────────────────────┘
 *
 * The cutter parses only strings, brackets and the text between items; the consumer of an item
 * checks the item's text. A text that is no list is refused: as an empty list it would remove all
 * objects listed before.
 *
 * Bounds: one item, `itemBytesMax`; the envelope, `envelopeBytesMax`.
 */
import { CacheError } from '../domain/errors.js';
import { GatheredBytes } from '../domain/base/gathered-bytes.js';
import { parseJson } from '../json/json-parser.js';
import { textAt } from '../domain/base/members.js';

/** `apiVersion`: '' if absent. `continueToken`: '' on the last page. */
export type ListEnvelope = Readonly<{ apiVersion: string; resourceVersion: string; continueToken: string }>;

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const comma = 0x2c;
const spaces: readonly number[] = [0x20, 0x09, 0x0a, 0x0d];
/** The look-behind excludes the end of a longer name. */
const itemsAhead = /(?<!\\)"items"\s*:\s*$/;
/**
 * How many bytes before an array are searched for the name `items`. With more white space the name
 * is not found, and the page is refused.
 */
const lookedAtBytes = 256;
/**
 * A continue token contains the last name, which may be long: kcp accepts ClusterRoles with names
 * of 50,000 characters.
 */
const envelopeBytesMax = 256 * 1024;
const lastBytes = new TextDecoder();

export class ListCutter {
  readonly #itemBytesMax: number;
  /** A chunk may end within a character. */
  readonly #decoder = new TextDecoder();
  #envelope = '';
  #depth = 0;
  #inString = false;
  #escaped = false;
  #inItems = false;
  /** The token before the present position among the items. */
  #before: 'nothing' | 'item' | 'comma' = 'nothing';
  /** The part of the present item that earlier chunks had. */
  readonly #begun = new GatheredBytes();

  constructor(itemBytesMax: number) {
    this.#itemBytesMax = itemBytesMax;
  }

  /** The items that end in this chunk. */
  push(chunk: Uint8Array): readonly Uint8Array[] {
    const items: Uint8Array[] = [];
    let from = 0;
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i];
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (byte === backslash) this.#escaped = true;
        else if (byte === quote) this.#inString = false;
      } else if (this.#inItems && this.#depth === 2 && !this.#mayStandAmongItems(byte))
        throw new CacheError('the items of the list are not objects separated by commas');
      else if (byte === quote) this.#inString = true;
      else if (byte === openBrace || byte === openBracket) {
        this.#depth += 1;
        if (this.#inItems && this.#depth === 3) from = i;
        else if (!this.#inItems && this.#depth === 2 && byte === openBracket && this.#opensItems(chunk.subarray(from, i))) {
          this.#keep(chunk.subarray(from, i + 1));
          this.#inItems = true;
        }
      } else if (byte === closeBrace || byte === closeBracket) {
        this.#depth -= 1;
        if (this.#inItems && this.#depth === 2) items.push(this.#begun.takeJoinedWith(chunk.subarray(from, i + 1)));
        else if (this.#inItems && this.#depth === 1) {
          this.#inItems = false;
          from = i;
        }
      }
    }
    if (!this.#inItems) this.#keep(chunk.subarray(from));
    else if (this.#depth > 2) this.#begin(chunk.subarray(from));
    return items;
  }

  /** Throws if the page is incomplete. */
  end(): ListEnvelope {
    if (this.#depth !== 0 || this.#envelope === '') throw new CacheError('the list broke off');
    // Readers differ in which of two repeated names they use.
    if (parseJson(this.#envelope, { duplicates: 'refused' }).kind === 'refused')
      throw new CacheError('the list is not JSON, or repeats a name');
    const parsed = JSON.parse(this.#envelope) as Readonly<{ items?: unknown; metadata?: Readonly<Record<string, unknown>> }>;
    const resourceVersion = textAt(parsed, 'metadata', 'resourceVersion') ?? '';
    if (resourceVersion === '') throw new CacheError('the list has no resourceVersion');
    const { items, metadata = {} } = parsed;
    const continueToken = metadata['continue'] ?? '';
    // Go writes a list without items as null.
    if (items !== null && !Array.isArray(items)) throw new CacheError('the list has no items');
    if (items !== null && items.length > 0) throw new CacheError('the list spells the name of its items in another way');
    if (typeof continueToken !== 'string') throw new CacheError('the continue token of the list is not a string');
    if (continueToken === '' && (metadata['remainingItemCount'] ?? 0) !== 0)
      throw new CacheError('the list says that items remain, but has no continue token');
    return { apiVersion: textAt(parsed, 'apiVersion') ?? '', resourceVersion, continueToken };
  }

  #opensItems(before: Uint8Array): boolean {
    const last = lastBytes.decode(before.subarray(-lookedAtBytes));
    return itemsAhead.test(before.length < lookedAtBytes ? this.#envelope.slice(-lookedAtBytes) + last : last);
  }

  #mayStandAmongItems(byte: number | undefined): boolean {
    const before = this.#before;
    switch (byte) {
      case openBrace:
        this.#before = 'item';
        return before !== 'item';
      case comma:
        this.#before = 'comma';
        return before === 'item';
      case closeBracket:
        return before !== 'comma';
      default:
        return byte !== undefined && spaces.includes(byte);
    }
  }

  #keep(bytes: Uint8Array): void {
    this.#envelope += this.#decoder.decode(bytes, { stream: true });
    if (this.#envelope.length > envelopeBytesMax)
      throw new CacheError(`the answer is not a list: it has more than ${envelopeBytesMax} characters besides its items`);
  }

  #begin(bytes: Uint8Array): void {
    this.#begun.add(bytes);
    if (this.#begun.bytes > this.#itemBytesMax) throw new CacheError(`an item of the list has more than ${this.#itemBytesMax} bytes`);
  }
}
