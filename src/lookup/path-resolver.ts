/**
 * Asks a cache which logical cluster a path leads to. It remembers no answer, because the path may
 * lead elsewhere a moment later.
 */
import type { CacheReaderParts } from './cache-reader.js';
import { parsePathAnswer, resolveTarget, type ResolvedPath } from './path-answer.js';
import { refusalOf } from './read-answer.js';

export class PathResolver {
  readonly #connection: CacheReaderParts['connection'];

  constructor({ connection }: Pick<CacheReaderParts, 'connection'>) {
    this.#connection = connection;
  }

  /**
   * `path`: Workspaces, `user:NAME` for a home, or the name of a logical cluster. Throws
   * CacheFault, or the reason of an aborted `signal`.
   */
  async resolve(path: string, signal?: AbortSignal): Promise<ResolvedPath> {
    const answer = await this.#connection.ask(resolveTarget(path), signal);
    if (answer.status !== 200) throw refusalOf(answer);
    return parsePathAnswer(answer.text);
  }

  /** Ends requests under way with a CacheFault, and closes the connections. */
  close(): void {
    this.#connection.close();
  }
}
