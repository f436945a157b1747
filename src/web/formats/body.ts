/** Reads the body of a request as the bytes of one JSON object. Bounded in size. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { badRequest, entityTooLarge, Refused } from '../../domain/errors.js';
import { GatheredBytes } from '../../domain/base/gathered-bytes.js';
import type { Duplicates } from '../../domain/heavy-task.js';
import type { HeavyWork } from '../../domain/ports.js';
import type { Exchange } from '../../http/exchange.js';

/**
 * Reading YAML takes a hundred times as long as reading JSON, so a longer text would delay others
 * who send YAML.
 */
const yamlBytesMax = 256 * 1024;
/** The media types that Kubernetes' own messages name. */
const acceptedBodies = 'application/json, application/yaml';

/**
 * Throws Refused: 413 beyond `bytesMax`, 415 for a compressed body, 429 if this client already has
 * too much in memory, 400 if the sender breaks off.
 */
export async function readBody(exchange: Exchange, bytesMax: number): Promise<Uint8Array> {
  const { request, memory } = exchange;
  const declared = Number(request.headers['content-length'] ?? 0);
  if (declared > bytesMax) throw entityTooLarge(bytesMax);
  if (request.headers['content-encoding'] !== undefined && request.headers['content-encoding'] !== 'identity') {
    throw new Refused({ reason: 'UnsupportedMediaType', message: 'the body of the request must not be compressed' });
  }
  const body = new GatheredBytes();
  try {
    // By default Node would destroy the connection if a body is refused half way. The exchange
    // drops the rest later.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      if (body.bytes + chunk.length > bytesMax) throw entityTooLarge(bytesMax);
      if (!memory.tryReserve(chunk.length)) throw exchange.refused('bufferedBytes');
      body.add(chunk);
    }
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Refused(badRequest('the body of the request broke off'));
  }
  if (body.bytes > 0) await exchange.turn();
  if (exchange.isOver) throw new Refused(badRequest('the client went before its body was read'));
  return body.takeJoined();
}

/**
 * Matches what Go's mime.ParseMediaType accepts, including a semicolon at the end. The pattern is
 * unambiguous, so matching cannot backtrack for long.
 */
const mediaTypeForm =
  /^([!#-'*+.\w^`|~-]+\/[!#-'*+.\w^`|~-]+)[ \t]*(?:;[ \t]*[!#-'*+.\w^`|~-]+=(?:[!#-'*+.\w^`|~-]+|"(?:[^"\\]|\\[^])*")[ \t]*)*(?:;[ \t]*)?$/;

/**
 * The media type of a body. Without a Content-Type it is JSON, because kcp's deletes have none. A
 * malformed Content-Type is returned unchanged, and no reader accepts it.
 */
export function mediaType(request: IncomingMessage): string {
  const text = request.headers['content-type'] ?? '';
  if (text === '') return 'application/json';
  return mediaTypeForm.exec(text)?.[1]?.toLowerCase() ?? text;
}

/**
 * The body as JSON text; JSON is returned unchanged. Throws Refused: 415 for anything but JSON and
 * YAML.
 */
export async function readJsonBody(
  exchange: Exchange,
  bytesMax: number,
  heavy: HeavyWork,
  duplicates: Duplicates = 'last',
): Promise<Uint8Array> {
  const type = mediaType(exchange.request);
  if (type !== 'application/json' && type !== 'application/yaml') throw unsupportedMediaType(acceptedBodies);
  const bytes = await readBody(exchange, type === 'application/yaml' ? Math.min(bytesMax, yamlBytesMax) : bytesMax);
  assertUtf8(bytes);
  if (type === 'application/json') return duplicates === 'refused' ? heavy.run({ kind: 'strict json', text: bytes }) : bytes;
  return heavy.run({ kind: 'json from yaml', text: bytes, bytesMax, duplicates });
}

export function assertUtf8(bytes: Uint8Array): void {
  if (!isUtf8(bytes)) throw new Refused(badRequest('the body of the request is not UTF-8'));
}

export function unsupportedMediaType(accepted: string): Refused {
  return new Refused({
    reason: 'UnsupportedMediaType',
    message: `the body of the request was in an unknown format - accepted media types include: ${accepted}`,
  });
}
