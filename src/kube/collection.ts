/**
 * The collection in the URL of a list: the objects of one type on a server, in all logical clusters
 * or in one.
 */
export type Collection = Readonly<{
  /** '*': all logical clusters. */
  cluster: string;
  group: string;
  version: string;
  resource: string;
  /** kcp's own APIExport whose identity a request must name. */
  identityOf: string | undefined;
  /** The text of a URL's `labelSelector`; '' for every object. */
  labelSelector: string;
}>;

export type ReadOptions =
  /** The present objects as events, then all changes. */
  | Readonly<{ kind: 'watch-list'; timeoutSeconds: number }>
  | Readonly<{ kind: 'watch'; resourceVersion: string; timeoutSeconds: number }>
  /** `limit` 0: the whole list in one answer. */
  | Readonly<{ kind: 'list'; limit: number; continueToken: string }>;

/** The path and the query of a request. `identity`: '' if the request needs none. */
export function formatRead(
  { cluster, group, version, resource, labelSelector }: Collection,
  identity: string,
  options: ReadOptions,
): string {
  const api = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const query = new URLSearchParams(queryOf(options));
  if (labelSelector !== '') query.set('labelSelector', labelSelector);
  const suffix = query.size === 0 ? '' : `?${query}`;
  return `/clusters/${cluster}${api}/${resource}${identity === '' ? '' : `:${identity}`}${suffix}`;
}

function queryOf(options: ReadOptions): Readonly<Record<string, string>> {
  switch (options.kind) {
    case 'watch-list':
      return {
        watch: 'true',
        allowWatchBookmarks: 'true',
        sendInitialEvents: 'true',
        resourceVersionMatch: 'NotOlderThan',
        timeoutSeconds: String(options.timeoutSeconds),
      };
    case 'watch':
      return {
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion: options.resourceVersion,
        timeoutSeconds: String(options.timeoutSeconds),
      };
    case 'list':
      return {
        ...(options.limit > 0 && { limit: String(options.limit) }),
        ...(options.continueToken !== '' && { continue: options.continueToken }),
      };
  }
}
