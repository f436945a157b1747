/**
 * Requests whose answer ends only when its client stops, such as a watch or a followed log. They
 * have no deadline. When the front door stops, they end first: their clients reconnect elsewhere
 * while other requests complete.
 */
export class LongRunningRequests {
  readonly #ends = new Set<() => void>();
  #isStopping = false;

  /**
   * `end`: called when the front door stops, at once if it is stopping already. Returns a function
   * that removes `end`.
   */
  add(end: () => void): () => void {
    if (this.#isStopping) end();
    else this.#ends.add(end);
    return () => void this.#ends.delete(end);
  }

  endAll(): void {
    this.#isStopping = true;
    for (const end of this.#ends) end();
  }
}

/** The deprecated `watch` prefix in paths. */
const watchPath = /\/(?:api|apis\/[^/]+)\/[^/]+\/watch\/./;

/**
 * `target`: path and query. As in Kubernetes, any parameter value but `0` and `false` counts as
 * true, even the empty one.
 */
export function lasts(method: string | undefined, target: string): boolean {
  if (method !== 'GET') return false;
  const [path = ''] = target.split('?', 1);
  if (watchPath.test(path)) return true;
  const query = new URLSearchParams(target.slice(path.length + 1));
  return ['watch', 'follow'].some((name) => query.has(name) && !['false', '0'].includes((query.get(name) ?? '').toLowerCase()));
}
