/**
 * The mapping file of kcp's front proxy: which requests go to which backend, and with which
 * certificate. Pure.
 *
 *   - path: /clusters/                      a logical cluster: to its shard, not to the backend
 *     backend: https://root:6443            other paths: the server that gets the request
 *     backend_server_ca: ca.crt
 *     proxy_client_cert: requestheader.crt  the certificate that lets the proxy say who asks
 *     proxy_client_key: requestheader.key
 */
import { isObject, type Members } from '../domain/base/members.js';
import { usualHeaders, type IdentityHeaders } from './forwarded-headers.js';

/**
 * `origin`: scheme, host and port. `path`: the prefix of the request's path, without a slash at its
 * end.
 */
export type BackendUrl = Readonly<{ origin: string; path: string }>;

export type Mapping = Readonly<{
  /**
   * Without a slash at its end. A segment in braces matches any one segment:
   * `/e2e/clusters/{cluster}`.
   */
  path: string;
  backend: BackendUrl;
  caFile: string;
  certFile: string;
  keyFile: string;
  identityHeaders: IdentityHeaders;
}>;

export type ParsedMapping =
  | Readonly<{ kind: 'parsed'; mappings: readonly Mapping[] }>
  | Readonly<{ kind: 'wrong'; problems: readonly [MappingProblem, ...MappingProblem[]] }>;

/** `path`: keys and list indexes, from the outermost to the innermost. */
export type MappingProblem = Readonly<{ path: readonly (string | number)[]; message: string }>;

export const clustersPath = '/clusters';

const mappingsMax = 256;
const textNames = ['path', 'backend', 'backend_server_ca', 'proxy_client_cert', 'proxy_client_key'] as const;
const headerNames = ['user_header', 'group_header', 'extra_header_prefix'] as const;
const headerPattern = /^[A-Za-z0-9-]{1,128}$/;
const pathPattern = /^(?:\/(?:\{[A-Za-z_]+\}|[A-Za-z0-9._~:*!$&'()+,;=@-]*))+$/;

/** `value`: the parsed YAML of the file. */
export function parseMappings(value: unknown): ParsedMapping {
  const problems: MappingProblem[] = [];
  const mappings = Array.isArray(value) ? value.slice(0, mappingsMax).flatMap((each, i) => parseMapping(each, i, problems) ?? []) : [];
  if (!Array.isArray(value) || value.length === 0) problems.push({ path: [], message: 'must be a list of mappings' });
  else if (value.length > mappingsMax)
    problems.push({ path: [], message: `has ${value.length} mappings; at most ${mappingsMax} are allowed` });
  mappings.forEach(({ path }, i) => {
    if (mappings.findIndex((other) => other.path === path) < i) problems.push({ path: [i, 'path'], message: `${path} is mapped twice` });
  });
  const [first, ...others] = problems;
  return first === undefined ? { kind: 'parsed', mappings } : { kind: 'wrong', problems: [first, ...others] };
}

function parseMapping(value: unknown, at: number, problems: MappingProblem[]): Mapping | undefined {
  const before = problems.length;
  const report = (name: string, message: string): void => void problems.push({ path: [at, name], message });
  if (!isObject(value)) {
    problems.push({ path: [at], message: `must be a mapping of ${textNames.join(', ')}` });
    return undefined;
  }
  const known: readonly string[] = [...textNames, ...headerNames];
  for (const name of Object.keys(value))
    if (!known.includes(name)) report(name, `is not a key of a mapping; the keys are ${known.join(', ')}`);
  const [path, backend, caFile, certFile, keyFile] = textNames.map((name) => textIn(value, name, report)) as [
    string,
    string,
    string,
    string,
    string,
  ];
  const [user = usualHeaders.user, group = usualHeaders.group, extraPrefix = usualHeaders.extraPrefix] = headerNames.map((name) =>
    headerIn(value, name, report),
  );
  if (path !== '' && !pathPattern.test(path)) report('path', 'must be a path that begins with a slash');
  if (path === '/') report('path', 'must not be /: the front door answers 404 to a path without a mapping');
  const to = backend === '' ? undefined : parseBackendUrl(backend);
  if (backend !== '' && to === undefined) report('backend', 'must be an https URL without credentials, query or fragment');
  if (problems.length > before || to === undefined) return undefined;
  return { path: withoutEnd(path), backend: to, caFile, certFile, keyFile, identityHeaders: { user, group, extraPrefix } };
}

export function backendUrlOf({ origin, pathname }: URL): BackendUrl {
  return { origin, path: withoutEnd(pathname) };
}

/**
 * Parses a URL to which requests may be sent in the name of callers; undefined for any other text.
 */
export function parseBackendUrl(text: string): BackendUrl | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const { protocol, username, password, search, hash } = url;
  const isPlain = [username, password, search, hash].every((part) => part === '');
  return protocol === 'https:' && isPlain ? backendUrlOf(url) : undefined;
}

/**
 * The order in which Go's ServeMux prefers patterns. Of two patterns for the same path, the first
 * is the one with a literal segment instead of a wildcard, or with more segments.
 */
export function mostSpecificFirst({ path: one }: Mapping, { path: other }: Mapping): number {
  const [segments, others] = [one.split('/'), other.split('/')];
  for (const [at, segment] of segments.entries()) {
    const beside = others[at];
    if (beside === undefined) return -1;
    if (isAny(segment) !== isAny(beside)) return isAny(segment) ? 1 : -1;
    if (!isAny(segment) && segment !== beside) return segment < beside ? -1 : 1;
  }
  return others.length - segments.length;
}

/** Whether the segment of a pattern is a wildcard. */
export function isAny(segment: string): boolean {
  return segment.startsWith('{');
}

function textIn(members: Members, name: string, report: (name: string, message: string) => void): string {
  const value = members[name];
  if (typeof value === 'string' && value !== '') return value;
  report(name, 'must be given, as a string');
  return '';
}

/** The name in lower case, as HTTP/2 requires; undefined if it is missing or empty. */
function headerIn(members: Members, name: string, report: (name: string, message: string) => void): string | undefined {
  const value = members[name] ?? '';
  if (value === '') return undefined;
  if (typeof value === 'string' && headerPattern.test(value)) return value.toLowerCase();
  report(name, 'must be the name of a header');
  return undefined;
}

function withoutEnd(path: string): string {
  let end = path.length;
  while (path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}
