/**
 * Reads a watch stream as cheaply as possible. It finds lines by their newline, and in a line only
 * the type, the name and the revision, by searching for bytes. JSON.parse of every event would
 * measure the client.
 *
 * Bounds: only a line that spans two chunks is copied; one that grows beyond lineBytesMax is an
 * error.
 */
import { nameDigits, nameMark, roundMark } from './mixed-objects.js';

const lineBytesMax = 16 * 1024 * 1024;
const newline = 0x0a;
const quote = 0x22;
const zero = 0x30;
const typeStart = Buffer.from('{"type":"');
const revisionStart = Buffer.from('"resourceVersion":"');
const nameStart = Buffer.from(nameMark);
const roundStart = Buffer.from(roundMark);

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';

const typesByLetter: Readonly<Record<number, EventType>> = {
  0x41: 'ADDED',
  0x4d: 'MODIFIED',
  0x44: 'DELETED',
  0x42: 'BOOKMARK',
  0x45: 'ERROR',
};

/** One line, valid only during the call that receives it. */
export type Line = { bytes: Buffer; start: number; end: number };

export class EventScanner {
  readonly #onLine: (line: Line) => void;
  readonly #line: Line = { bytes: Buffer.alloc(0), start: 0, end: 0 };
  #rest: Buffer | undefined;

  constructor(onLine: (line: Line) => void) {
    this.#onLine = onLine;
  }

  push(chunk: Buffer): void {
    let start = 0;
    if (this.#rest !== undefined) {
      const end = chunk.indexOf(newline);
      const line = Buffer.concat([this.#rest, end === -1 ? chunk : chunk.subarray(0, end)]);
      if (end === -1) return this.#keep(line);
      this.#rest = undefined;
      this.#send(line, 0, line.length);
      start = end + 1;
    }
    for (let end = chunk.indexOf(newline, start); end !== -1; end = chunk.indexOf(newline, start)) {
      this.#send(chunk, start, end);
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
  }

  #keep(rest: Buffer): void {
    if (rest.length > lineBytesMax) throw new Error(`a line of more than ${lineBytesMax} bytes`);
    this.#rest = rest;
  }

  #send(bytes: Buffer, start: number, end: number): void {
    this.#line.bytes = bytes;
    this.#line.start = start;
    this.#line.end = end;
    this.#onLine(this.#line);
  }
}

export function typeOf({ bytes, start, end }: Line): EventType {
  const letter = start + typeStart.length;
  const type =
    bytes.compare(typeStart, 0, typeStart.length, start, Math.min(letter, end)) === 0 ? typesByLetter[bytes[letter]!] : undefined;
  if (type === undefined) throw new Error(`no watch event: ${shown({ bytes, start, end })}`);
  return type;
}

export function indexIn(line: Line): number {
  const at = line.bytes.indexOf(nameStart, line.start);
  if (at === -1 || at >= line.end) throw new Error(`no name of ours: ${shown(line)}`);
  return numberAt(line.bytes, at + nameStart.length, at + nameStart.length + nameDigits);
}

export function roundIn(line: Line): number {
  const at = line.bytes.indexOf(roundStart, line.start);
  if (at === -1 || at >= line.end) throw new Error(`no round of ours: ${shown(line)}`);
  const first = at + roundStart.length;
  return numberAt(line.bytes, first, line.bytes.indexOf(quote, first));
}

/** The resourceVersion in an answer to a write, as text. */
export function resourceVersionIn(bytes: Buffer): string {
  const at = bytes.indexOf(revisionStart);
  if (at === -1) throw new Error(`no resourceVersion: ${bytes.toString('utf8', 0, 300)}`);
  return bytes.toString('latin1', at + revisionStart.length, bytes.indexOf(quote, at + revisionStart.length));
}

export function shown({ bytes, start, end }: Line): string {
  return bytes.toString('utf8', start, Math.min(end, start + 300));
}

function numberAt(bytes: Buffer, first: number, behind: number): number {
  let value = 0;
  for (let at = first; at < behind; at++) value = value * 10 + bytes[at]! - zero;
  return value;
}
