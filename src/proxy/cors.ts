/** Which web pages may send requests across origins, by the rules of kcp's proxy. Pure. */

/**
 * `origin`: the Origin header. Undefined: no CORS headers, so the browser keeps the answer from the
 * page.
 */
export function corsHeaders(origin: string | undefined, allowed: readonly RegExp[]): Readonly<Record<string, string>> | undefined {
  if (origin === undefined || origin === '' || !allowed.some((pattern) => pattern.test(origin))) return undefined;
  return { 'access-control-allow-origin': origin, ...sameForAll };
}

const sameForAll = {
  'access-control-allow-methods': 'POST, GET, OPTIONS, PUT, DELETE, PATCH',
  'access-control-allow-headers':
    'Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since',
  'access-control-expose-headers': 'Date',
  'access-control-allow-credentials': 'true',
} as const;
