/** Hands an answer over to koa, which sends it; from here on it is what its exchange has in memory. */
import type { Context } from 'koa';
import type { Exchange } from '../http/exchange.js';
import { send } from '../http/send.js';
import { indented } from './indented.js';
import type { FaceAnswer } from './kube-face.js';

/** What is longer is sent in pieces, so that it is seen whether its reader takes any. */
const pieceBytesMax = 64 * 1024;

export async function respond(context: Context, exchange: Exchange, answered: FaceAnswer): Promise<void> {
  if (answered.kind === 'streamed') return void (context.respond = false);
  fill(context, answered);
  const body = context.body as Buffer | null;
  exchange.room.settle(body?.length ?? 0);
  if (body === null || body.length <= pieceBytesMax || context.method === 'HEAD') return;
  context.respond = false;
  await send(inPieces(body), exchange);
}

async function* inPieces(body: Buffer): AsyncGenerator<readonly Uint8Array[]> {
  for (let at = 0; at < body.length; at += pieceBytesMax) yield [body.subarray(at, at + pieceBytesMax)];
}

function fill(context: Context, answered: Exclude<FaceAnswer, { kind: 'streamed' }>): void {
  switch (answered.kind) {
    case 'text':
      context.status = answered.code;
      context.set('content-type', 'text/plain; charset=utf-8');
      context.set('x-content-type-options', 'nosniff');
      context.body = Buffer.from(answered.text);
      return;
    case 'discovery': {
      const { contentType, body, etag } = answered.answer;
      context.set('content-type', contentType);
      if (etag !== undefined) context.set('etag', etag);
      context.body = Buffer.from(body);
      context.status = context.fresh ? 304 : 200;
      return;
    }
    case 'bytes': {
      context.status = answered.code;
      context.set('content-type', answered.contentType);
      context.set('cache-control', 'no-cache, private');
      for (const warning of answered.warnings ?? []) context.append('warning', `299 - ${JSON.stringify(warning)}`);
      const bytes = Buffer.from(answered.bytes.buffer, answered.bytes.byteOffset, answered.bytes.length);
      context.body = isIndented(context) && answered.contentType === 'application/json' ? indented(bytes) : bytes;
    }
  }
}

/** People at a terminal get indented JSON (N3). */
function isIndented({ query, req }: Context): boolean {
  const pretty = query['pretty'];
  if (pretty !== undefined) return pretty === '1' || pretty === 'true';
  return /^(curl|Wget)\//.test(req.headers['user-agent'] ?? '');
}
