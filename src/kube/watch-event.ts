/** One line of a watch, cut into the event's type and the text of its object. */
import { GatheredBytes } from '../domain/base/gathered-bytes.js';
import { CacheError } from '../domain/errors.js';
import { member, nestingMax, scanObject, valueText } from '../json/object-text.js';

export type WatchEvent = Readonly<{ type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'; object: Uint8Array }>;

/**
 * Every API server writes events in this form, with nothing after the object. If anything follows
 * the object, scanning the object fails.
 */
const usual = /^\{"type":"(ADDED|MODIFIED|DELETED|BOOKMARK|ERROR)","object":$/;
const longestStart = '{"type":"BOOKMARK","object":'.length;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const decoder = new TextDecoder();

export function cutWatchEvent(line: Uint8Array): WatchEvent {
  const brace = line.indexOf(openBrace, 1);
  if (brace > 0 && brace <= longestStart && line.at(-1) === closeBrace) {
    const [, type] = usual.exec(decoder.decode(line.subarray(0, brace))) ?? [];
    if (type !== undefined) return { type: parseType(type), object: line.subarray(brace, line.length - 1) };
  }
  const { top } = scanObject(line, nestingMax);
  const [type, object] = [member(top, 'type'), member(top, 'object')];
  if (type === undefined || object === undefined) throw new CacheError('a line of the watch is not an event');
  return { type: parseType(JSON.parse(valueText(line, type))), object: line.subarray(object.valueStart, object.valueEnd) };
}

function parseType(text: unknown): WatchEvent['type'] {
  switch (text) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
    case 'BOOKMARK':
    case 'ERROR':
      return text;
    default:
      throw new CacheError(`the watch has an event of the unknown type ${JSON.stringify(text)}`);
  }
}

const newline = 0x0a;

/**
 * Cuts received bytes into the lines of a watch. A batch has the lines that one chunk completed.
 * The beginning of a line is kept until its end arrives, up to `lineBytesMax`.
 *
 * Yields lines without their newline. Bytes after the last newline are no complete event, and are
 * dropped.
 */
export async function* lines(chunks: AsyncIterable<Uint8Array>, lineBytesMax: number): AsyncGenerator<readonly Uint8Array[], void> {
  const begun = new GatheredBytes();
  for await (const chunk of chunks) {
    const batch: Uint8Array[] = [];
    let from = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, from)) {
      batch.push(begun.takeJoinedWith(chunk.subarray(from, end)));
      from = end + 1;
    }
    if (from < chunk.length) {
      begun.add(chunk.subarray(from));
      if (begun.bytes > lineBytesMax) throw new CacheError(`an event of the watch has more than ${lineBytesMax} bytes`);
    }
    if (batch.length > 0) yield batch;
  }
}
