/** Where objects of one type are on a server, as a URL: of all logical clusters, or of one. */
export type Collection = Readonly<{
  /** '*' for all of them. */
  cluster: string;
  group: string;
  version: string;
  resource: string;
  /** The APIExport of kcp's own whose identity a request must name. */
  identityOf: string | undefined;
  /** As in a URL's `labelSelector`; '' for every object. */
  labelSelector: string;
}>;

export type ReadOptions =
  /** What is there, as events, and what happens then. */
  | Readonly<{ kind: 'watch-list'; timeoutSeconds: number }>
  | Readonly<{ kind: 'watch'; resourceVersion: string; timeoutSeconds: number }>
  /** `limit` 0: all of it in one answer. */
  | Readonly<{ kind: 'list'; limit: number; continueToken: string }>;

/** The path and the query to ask with. `identity` is '' where none must be named. */
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
