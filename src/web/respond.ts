/** Writes an answer to its exchange, which reserves exactly the answer's bytes of memory. */
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import fresh from 'fresh';
import type { Exchange } from '../http/exchange.js';
import { send } from '../http/send.js';
import { indented, indentedFromBytesMax } from './formats/indented.js';
import type { FaceAnswer } from './kube/kube-face.js';
import { join, lengthOf, type Part } from './formats/parts.js';
import type { StatusAnswer } from './formats/status.js';

/** A longer answer is sent without a copy, at its reader's pace. */
const copiedBytesMax = 64 * 1024;

/** `parts`: undefined if the client already has the body. */
type Written = Readonly<{ code: number; headers: OutgoingHttpHeaders; parts: readonly Part[] | undefined }>;

export async function respond(exchange: Exchange, answered: FaceAnswer): Promise<void> {
  if (answered.kind === 'streamed' || exchange.isOver) return;
  const { request, response } = exchange;
  const { code, headers, parts } = written(exchange, answered);
  if (parts === undefined) {
    response.writeHead(code, headers);
    response.end();
    return;
  }
  const length = lengthOf(parts);
  exchange.memory.reserveExactly(length);
  response.writeHead(code, { ...headers, 'content-length': length });
  if (request.method === 'HEAD') response.end();
  else if (length <= copiedBytesMax) response.end(join(parts));
  else await send(batches(parts), exchange);
}

/** If an answer has already begun, cuts it, so that its client detects that it is incomplete. */
export function respondRefused(exchange: Exchange, { code, text, retryAfterSeconds = 0 }: StatusAnswer): void {
  const { request, response } = exchange;
  if (response.headersSent) return exchange.cut();
  if (exchange.isOver) return;
  const retry = retryAfterSeconds > 0 ? { 'retry-after': String(retryAfterSeconds) } : {};
  const body = Buffer.from(text);
  // Left over from the answer that failed.
  response.removeHeader('content-encoding');
  response.writeHead(code, { 'content-type': 'application/json', ...unstored, ...retry, 'content-length': body.length });
  if (request.method === 'HEAD') response.end();
  else response.end(body);
}

const unstored = { 'cache-control': 'no-cache, private' };

function written({ request, response }: Exchange, answered: Exclude<FaceAnswer, { kind: 'streamed' }>): Written {
  switch (answered.kind) {
    case 'text': {
      const headers = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' };
      return { code: answered.code, headers, parts: [Buffer.from(answered.text)] };
    }
    case 'tagged': {
      const { contentType, body, etag } = answered.answer;
      const headers = { 'content-type': contentType, ...(etag === undefined ? {} : { etag }) };
      const isHeld = etag !== undefined && fresh(request.headers, { etag });
      return isHeld ? { code: 304, headers: { etag }, parts: undefined } : { code: 200, headers, parts: [Buffer.from(body)] };
    }
    case 'bytes': {
      const { code, contentType, parts, warnings = [] } = answered;
      if (warnings.length > 0) response.setHeader('warning', warningHeader(warnings));
      const isForPeople = contentType === 'application/json' && isIndented(request) && lengthOf(parts) <= indentedFromBytesMax;
      return { code, headers: { 'content-type': contentType, ...unstored }, parts: isForPeople ? [indented(join(parts))] : parts };
    }
  }
}

async function* batches(parts: readonly Part[]): AsyncGenerator<readonly Uint8Array[]> {
  yield parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part));
}

/** People at a terminal get indented JSON. */
function isIndented({ url = '', headers }: IncomingMessage): boolean {
  if (url.includes('pretty=')) {
    const pretty = new URLSearchParams(url.slice(url.indexOf('?') + 1)).get('pretty');
    if (pretty !== null) return pretty === '1' || pretty === 'true';
  }
  return /^(curl|Wget)\//.test(headers['user-agent'] ?? '');
}

const charactersMax = 256;
const bytesMax = 4 * 1024;
/** The characters that Go's unicode.IsPrint rejects, which include halves of surrogate pairs. */
const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

/**
 * The Warning header of an answer, as kube-apiserver writes it. Pure.
 *
 * WARNING-1 The header can always be sent, whatever its texts quote from a request: the write may
 *    already be stored. Node writes one byte per character, so the header has a character for each
 *    UTF-8 byte.
 *
 * Bounds: a text is cut at `charactersMax`; lines beyond `bytesMax` in all are left out.
 */
function warningHeader(texts: readonly string[]): readonly string[] {
  const lines: string[] = [];
  let bytes = 0;
  for (const text of texts) {
    const shown = text.slice(0, charactersMax).replaceAll(unprintable, '');
    const line = Buffer.from(`299 - ${JSON.stringify(shown)}`).toString('latin1');
    bytes += line.length;
    if (bytes > bytesMax) break;
    lines.push(line);
  }
  return lines;
}
