/** Hands an answer over to koa, which sends it. */
import type { Context } from 'koa';
import { indented } from './indented.js';
import type { FaceAnswer } from './kube-face.js';

/** Longer text is for programs: to indent it would hold everybody up. */
const indentedBytesMax = 256 * 1024;

export function respond(context: Context, answered: FaceAnswer): void {
  switch (answered.kind) {
    case 'streamed':
      context.respond = false;
      return;
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
      context.body =
        isIndented(context) && answered.contentType === 'application/json' && answered.bytes.length <= indentedBytesMax
          ? indented(answered.bytes)
          : Buffer.from(answered.bytes.buffer, answered.bytes.byteOffset, answered.bytes.length);
    }
  }
}

/** How much memory an answer takes until its reader has it. What is streamed takes room for itself. */
export function bytesOf(answered: FaceAnswer): number {
  switch (answered.kind) {
    case 'streamed':
      return 0;
    case 'text':
      return answered.text.length;
    case 'discovery':
      return answered.answer.body.length;
    case 'bytes':
      return answered.bytes.length;
  }
}

/** People at a terminal get indented JSON (N3). */
function isIndented({ query, req }: Context): boolean {
  const pretty = query['pretty'];
  if (pretty !== undefined) return pretty === '1' || pretty === 'true';
  return /^(curl|Wget)\//.test(req.headers['user-agent'] ?? '');
}
