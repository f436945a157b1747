/** Formats headers for Node. Pure. */
import type { HeaderLines } from './forwarded-headers.js';

/**
 * Over HTTP/2 Node throws if one of `sentOnce` has several values. Only the first value is sent,
 * because Go servers use the first.
 */
export function singly(headers: HeaderLines): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      sentOnce.has(name) && typeof value !== 'string' ? (value[0] ?? '') : plain(value),
    ]),
  );
}

export function writable(headers: HeaderLines): Record<string, string | string[]> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, plain(value)]));
}

function plain(value: string | readonly string[]): string | string[] {
  return typeof value === 'string' ? value : [...value];
}

const sentOnce: ReadonlySet<string> = new Set([
  'access-control-allow-credentials',
  'access-control-max-age',
  'access-control-request-method',
  'age',
  'authorization',
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-md5',
  'content-range',
  'content-type',
  'date',
  'dnt',
  'etag',
  'expires',
  'from',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'last-modified',
  'location',
  'max-forwards',
  'proxy-authorization',
  'range',
  'referer',
  'retry-after',
  'tk',
  'upgrade-insecure-requests',
  'user-agent',
  'x-content-type-options',
]);
