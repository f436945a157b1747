/**
 * Parses the target of a request: a path and a query. Pure.
 *
 * TARGET-1 The path is split at '/', and then each segment is decoded once. Nothing is resolved
 *    or cut: `new URL` would resolve dots, also encoded ones, end the path at '#' and read '\' as
 *    '/'.
 * TARGET-2 A target that other parsers may read as another path is refused: any form but a
 *    path, '#', '\', bytes outside ASCII, and segments that can be no name.
 * TARGET-3 A query that servers read differently is refused: one with a broken escape or a ';'.
 *    Kubernetes drops such a parameter, and acts without it.
 */
import { badRequest } from '../domain/errors.js';
import { pathSegmentFlaws } from '../domain/syntax/name-syntax.js';
import { parsed, refused, type Parsed } from '../domain/parsed.js';

/** `path`: as it was sent. `segments`: decoded; a trailing slash adds none. */
export type Target = Readonly<{ path: string; segments: readonly string[]; query: URLSearchParams }>;

/** Printable ASCII except '#' and '\'. */
const targetPattern = /^\/[!"$-[\]-~]*$/;
const mayBeInvalidName = /%|^\.{1,2}$/;

export function parseTarget(text: string): Parsed<Target> {
  const refuse = (why: string): Parsed<never> => refused(badRequest(`invalid path: ${JSON.stringify(withoutQuery(text))}${why}`));
  if (!targetPattern.test(text)) return refuse('');
  const path = withoutQuery(text);
  const raw = path.slice(1).replace(/\/$/, '');
  const segments: string[] = [];
  for (const encoded of raw === '' ? [] : raw.split('/')) {
    const segment = decode(encoded);
    if (segment === undefined) return refuse('');
    const [flaw] = mayBeInvalidName.test(encoded) ? pathSegmentFlaws(segment) : [];
    if (flaw !== undefined) return refuse(`: ${JSON.stringify(segment)} ${flaw}`);
    segments.push(segment);
  }
  const query = parseQuery(text.slice(path.length + 1));
  return query === undefined
    ? refused(badRequest('invalid query: it has a broken escape, or a semicolon'))
    : parsed({ path, segments, query });
}

/** The part of a target that may be logged and shown to everybody. */
export function withoutQuery(text: string): string {
  return text.split('?', 1)[0] ?? '';
}

/** `URLSearchParams` alone would keep a broken escape as text, or read it as U+FFFD. */
function parseQuery(text: string): URLSearchParams | undefined {
  return text.includes(';') || decode(text) === undefined ? undefined : new URLSearchParams(`?${text}`);
}

function decode(text: string): string | undefined {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
