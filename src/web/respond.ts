/** Hands an answer over to koa, which sends it; from here on it counts as what its exchange has in memory. */
import type { Context } from 'koa';
import type { Exchange } from '../http/exchange.js';
import { send } from '../http/send.js';
import { indented, indentedFromBytesMax } from './indented.js';
import type { FaceAnswer } from './kube-face.js';
import { join, lengthOf, type Part } from './parts.js';

/** A longer answer is sent without a copy, at the pace of its reader. */
const copiedBytesMax = 64 * 1024;

export async function respond(context: Context, exchange: Exchange, answered: FaceAnswer): Promise<void> {
  if (answered.kind === 'streamed') return void (context.respond = false);
  const parts = begin(context, answered);
  if (parts === undefined) return;
  const length = lengthOf(parts);
  exchange.room.settle(length);
  if (length <= copiedBytesMax || context.method === 'HEAD') {
    context.body = join(parts);
    return;
  }
  context.length = length;
  context.respond = false;
  await send(batches(parts), exchange);
}

/** Sets status and headers; returns the body. Undefined when the client has it already. */
function begin(context: Context, answered: Exclude<FaceAnswer, { kind: 'streamed' }>): readonly Part[] | undefined {
  switch (answered.kind) {
    case 'text':
      context.status = answered.code;
      context.set('content-type', 'text/plain; charset=utf-8');
      context.set('x-content-type-options', 'nosniff');
      return [Buffer.from(answered.text)];
    case 'discovery': {
      const { contentType, body, etag } = answered.answer;
      context.status = 200;
      context.set('content-type', contentType);
      if (etag !== undefined) context.set('etag', etag);
      if (context.fresh) context.status = 304;
      return context.fresh ? undefined : [Buffer.from(body)];
    }
    case 'bytes': {
      const { code, contentType, parts, warnings = [] } = answered;
      context.status = code;
      context.set('content-type', contentType);
      context.set('cache-control', 'no-cache, private');
      for (const warning of warnings) context.append('warning', `299 - ${JSON.stringify(warning)}`);
      const isForPeople = contentType === 'application/json' && isIndented(context) && lengthOf(parts) <= indentedFromBytesMax;
      return isForPeople ? [indented(join(parts))] : parts;
    }
  }
}

async function* batches(parts: readonly Part[]): AsyncGenerator<readonly Uint8Array[]> {
  yield parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part));
}

/** People at a terminal get indented JSON. */
function isIndented({ query, req }: Context): boolean {
  const pretty = query['pretty'];
  if (pretty !== undefined) return pretty === '1' || pretty === 'true';
  return /^(curl|Wget)\//.test(req.headers['user-agent'] ?? '');
}
