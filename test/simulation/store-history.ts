/**
 * Checks what a store shows its watchers, from its first commit on. A history is impossible if a
 * revision does not rise, an object is created or deleted twice, or a change changes nothing.
 *
 * When an object is deleted, the store writes its namesake on another shard again. That does not
 * count as a change: it is there for informers, whose keys have no shard.
 */
import type { Change, Commit } from '../../src/domain/change.js';
import type { Key } from '../../src/domain/key.js';
import type { Body } from '../../src/domain/object.js';
import type { Revision } from '../../src/domain/revision.js';
import { formatSlice } from '../../src/domain/slice.js';

export class StoreHistory {
  readonly #report: (problem: string) => void;
  /** By key: whether the object exists. */
  readonly #stands = new Map<string, boolean>();
  #revision: Revision;
  #last: Change | undefined;

  constructor(report: (problem: string) => void, revision: Revision) {
    this.#report = report;
    this.#revision = revision;
  }

  see({ revision, changes }: Commit): void {
    for (const change of changes) {
      if (change.revision <= this.#revision) this.#report(`revision ${change.revision} came after ${this.#revision}`);
      this.#revision = change.revision;
      this.#look(change);
      this.#last = change;
    }
    if (revision < this.#revision) this.#report(`a commit of revision ${revision} holds ${this.#revision}`);
  }

  #look(change: Change): void {
    const { key } = change;
    const text = `${formatSlice(key)} ${placeOf(key)}`;
    const [stood, stands] = [this.#stands.get(text), change.kind === 'put'];
    this.#stands.set(text, stands);
    if (change.kind === 'delete' && stood === false) this.#report(`${text} was deleted twice`);
    if (change.kind === 'put' && change.created && stood === true) this.#report(`${text} was created twice`);
    if (change.kind === 'put' && !change.created && stood === false) this.#report(`${text} was changed but does not exist`);
    if (change.kind === 'put' && isSame(change.object.body, change.previous()?.body) && !this.#isWrittenAgain(key))
      this.#report(`${text} was changed to what it was`);
  }

  #isWrittenAgain(key: Key): boolean {
    const deleted = this.#last;
    return deleted?.kind === 'delete' && deleted.key.shard !== key.shard && placeOf(deleted.key) === placeOf(key);
  }
}

function placeOf({ cluster, namespace, name }: Key): string {
  return `${cluster}|${namespace}/${name}`;
}

function isSame(one: Body, other: Body | undefined): boolean {
  return other !== undefined && one.version === other.version && Buffer.compare(one.bytes, other.bytes) === 0;
}
