/**
 * Where canonical paths last led elsewhere. A watch of a path shows one logical cluster; whoever goes on from a revision of another one would keep the objects of
 * that, and miss those of this one: he has to list again.
 *
 * Bound: `pathsMax`. Of moves before this process began, and of those that are forgotten, only the last revision is known.
 */
import type { Commits, Revisions } from '../domain/store-port.js';
import type { Revision } from '../domain/revision.js';

const pathsMax = 10_000;

export class MovedPaths {
  readonly #movedAt = new Map<string, Revision>();
  #unknownUpTo: Revision;

  constructor({ commits, revisions }: Readonly<{ commits: Commits; revisions: Pick<Revisions, 'published'> }>) {
    this.#unknownUpTo = revisions.published;
    commits.subscribe(({ revision, movedPaths }) => {
      for (const path of movedPaths) this.#record(path, revision);
    });
  }

  /** Whether it may have led to another logical cluster at that revision than it does now. */
  hasMovedSince(path: string, revision: Revision): boolean {
    return revision < (this.#movedAt.get(path) ?? this.#unknownUpTo);
  }

  #record(path: string, revision: Revision): void {
    this.#movedAt.delete(path);
    this.#movedAt.set(path, revision);
    if (this.#movedAt.size <= pathsMax) return;
    const [[oldest, at] = ['', 0]] = this.#movedAt;
    this.#movedAt.delete(oldest);
    this.#unknownUpTo = at;
  }
}
