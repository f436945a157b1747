/**
 * The destination of a request, by its path alone. Pure.
 *
 *   /readyz, /livez, /metrics  answered here
 *   ..  or // in it            redirected to the path without
 *   /clusters/PATH[/…]         to the shard of PATH, as /clusters/NAME[/…]; the rest is unchanged
 *   below a mapping            to its backend, unchanged, if PATH leads somewhere. The most
 *                              specific mapping wins. PATH is at its {cluster}, or else in
 *                              …/clusters/PATH/…; * may replace any
 *   anything else              404
 *
 * ROUTE-1 The path is decoded once, here, and no backend finds another logical cluster in it than
 *    the resolved one. So a path that a backend may read differently is refused: one with encoded
 *    dots, a backslash, a fragment, or bytes outside ASCII. So is a path that, once decoded, is
 *    below another mapping or about another logical cluster.
 */
import { clustersPath, isAny, type Mapping } from './mapping.js';

export type Route =
  | Readonly<{ kind: 'local'; path: string }>
  | Readonly<{ kind: 'redirect'; location: string }>
  | Readonly<{ kind: 'malformed' }>
  | Readonly<{ kind: 'unmapped' }>
  /**
   * `rest`: the target after the logical cluster, with the query. It is '' or begins with a slash
   * or a question mark.
   */
  | Readonly<{ kind: 'cluster'; mapping: Mapping; path: string; rest: string }>
  /**
   * `path`: the path that must lead somewhere; undefined if none has to. `target`: path and query,
   * as received.
   */
  | Readonly<{ kind: 'mapped'; mapping: Mapping; path: string | undefined; target: string }>;

const localPath = /^\/(?:(?:readyz|livez)(?:\/[^/]+)?|metrics)$/;
const readOtherwise = /[^!-~]|[\\#]/;
const dotSegment = /(?:^|\/|%2f)(?:\.|%2e){1,2}(?=\/|%2f|$)/i;
const encoded = /%2[ef]/i;

/** `mappings`: the most specific first. `target`: path and query of a request. */
export function routeOf(target: string, mappings: readonly Mapping[]): Route {
  const queryAt = target.indexOf('?');
  const [pathname, query] = queryAt < 0 ? [target, ''] : [target.slice(0, queryAt), target.slice(queryAt)];
  if (!pathname.startsWith('/') || readOtherwise.test(target)) return { kind: 'malformed' };
  const dots = dotSegment.exec(pathname);
  if (dots !== null && encoded.test(pathname.slice(dots.index, dots.index + dots[0].length + 3))) return { kind: 'malformed' };
  const clean = cleaned(pathname);
  if (clean !== pathname) return { kind: 'redirect', location: `${clean}${query}` };
  if (localPath.test(pathname)) return { kind: 'local', path: pathname };

  const mapping = mappings.find(({ path }) => isBelow(path, pathname));
  const decoded = decode(pathname);
  if (decoded === undefined || mapping !== mappings.find(({ path }) => isBelow(path, decoded))) return { kind: 'malformed' };
  if (mapping === undefined) return { kind: 'unmapped' };
  if (mapping.path === clustersPath) return clusterRoute(mapping, pathname, query);
  const wanted = wantedIn(decoded, mapping);
  if (decode(wantedIn(pathname, mapping)) !== wanted) return { kind: 'malformed' };
  return { kind: 'mapped', mapping, path: wanted === '' || wanted === '*' ? undefined : wanted, target };
}

function wantedIn(pathname: string, mapping: Mapping): string {
  const at = mapping.path.split('/').indexOf('{cluster}');
  if (at >= 0) return pathname.split('/')[at] ?? '';
  const [, path = ''] = pathname.split(`${clustersPath}/`, 2);
  return path.split('/', 1)[0] ?? '';
}

function clusterRoute(mapping: Mapping, pathname: string, query: string): Route {
  const [segment = '', ...rest] = pathname.slice(clustersPath.length + 1).split('/');
  if (segment === '') return { kind: 'unmapped' };
  const path = decode(segment);
  if (path === undefined) return { kind: 'malformed' };
  return { kind: 'cluster', mapping, path, rest: `${rest.map((each) => `/${each}`).join('')}${query}` };
}

function isBelow(path: string, pathname: string): boolean {
  if (!path.includes('{')) return pathname === path || pathname.startsWith(`${path}/`);
  const segments = pathname.split('/');
  return path.split('/').every((wanted, i) => (isAny(wanted) ? (segments[i] ?? '') !== '' : segments[i] === wanted));
}

/** Cleans a path as Go's ServeMux does: removes empty segments and resolves dots. */
function cleaned(pathname: string): string {
  if (!pathname.includes('//') && !dotSegment.test(pathname)) return pathname;
  const kept: string[] = [];
  for (const segment of pathname.split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '' && segment !== '.') kept.push(segment);
  }
  const end = /\/\.{0,2}$/.test(pathname) && kept.length > 0 ? '/' : '';
  return `/${kept.join('/')}${end}`;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
