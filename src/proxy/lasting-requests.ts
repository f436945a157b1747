/**
 * Requests that last: their answer may go on for as long as anybody reads it, as a watch does and a log that is followed. They have no time in which they must be
 * complete, and a stop ends them first, so that their clients go on elsewhere while other requests complete.
 */
export class LastingRequests {
  readonly #ends = new Set<() => void>();
  #isStopping = false;

  /** `end`: called when the front door stops; at once if it does already. The result takes it back. */
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

/** The old prefix of a watch. */
const watchPath = /\/(?:api|apis\/[^/]+)\/[^/]+\/watch\/./;

/** `target`: path and query. A parameter counts as Kubernetes reads it: anything but `0` and `false`, even the empty text. */
export function lasts(method: string | undefined, target: string): boolean {
  if (method !== 'GET') return false;
  const [path = ''] = target.split('?', 1);
  if (watchPath.test(path)) return true;
  const query = new URLSearchParams(target.slice(path.length + 1));
  return ['watch', 'follow'].some((name) => query.has(name) && !['false', '0'].includes((query.get(name) ?? '').toLowerCase()));
}
