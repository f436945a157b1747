/**
 * How informers came back: what kcp's processes say of their own reflectors, and what a server logs of its requests. Of the latter two formats are read: lines of JSON with a
 * `verb` and a `path` (ours at --log-level=debug), and `"HTTP" verb="…" URI="…"` (kcp's own cache server at --v=4, which
 * logs a watch when it ends).
 *
 * Only wildcard collections count: an informer watches `shards/*` and `clusters/*`, and so does nothing else. Types with
 * an identity are left out, because kcp lists those itself, again and again.
 */
export type InformerRequests = Readonly<{ lists: number; watchLists: number; watches: number }>;

type LoggedRequest = Readonly<{ verb: string; path: string }>;

export function countInformerRequests(log: string): InformerRequests {
  const requests = log
    .split('\n')
    .flatMap((line) => loggedRequest(line) ?? [])
    .filter(({ path }) => isInformers(path));
  const isWatch = ({ path }: LoggedRequest): boolean => /[?&]watch=(true|1)/.test(path);
  return {
    lists: requests.filter((request) => !isWatch(request)).length,
    watchLists: requests.filter((request) => isWatch(request) && request.path.includes('sendInitialEvents=true')).length,
    watches: requests.filter((request) => isWatch(request) && !request.path.includes('sendInitialEvents=true')).length,
  };
}

/**
 * Times a reflector that was running listed again, by kcp's own log at level 3: each run of a reflector begins with a
 * "Listing and watching"; those of reflectors that have just started are none.
 */
export function countRelists(log: string): number {
  const lines = log.split('\n');
  const count = (text: string): number => lines.filter((line) => line.includes(`] "${text}"`)).length;
  return Math.max(0, count('Listing and watching') - count('Starting reflector'));
}

function loggedRequest(line: string): LoggedRequest | undefined {
  const klog = /"HTTP" verb="([A-Z]+)" URI="([^"]+)"/.exec(line);
  if (klog !== null) return { verb: klog[1]!, path: decodeURIComponent(klog[2]!) };
  if (!line.startsWith('{')) return undefined;

  const parsed = parseLine(line);
  const path = parsed?.['path'] ?? parsed?.['url'];
  return typeof path === 'string'
    ? { verb: String(parsed?.['verb'] ?? parsed?.['method'] ?? ''), path: decodeURIComponent(path) }
    : undefined;
}

function isInformers(path: string): boolean {
  const match = /\/shards\/\*\/clusters\/\*\/apis\/[^/]+\/[^/]+\/([^/?]+)(\?|$)/.exec(path);
  return match !== null && !match[1]!.includes(':');
}

function parseLine(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
