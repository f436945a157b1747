/** What a commit becomes: changes for those who follow, in rising revision, and an outcome for each writer, in its order. */
import assert from 'node:assert/strict';
import type { Change } from '../../domain/change.js';
import type { Mutation, Outcome } from '../../domain/mutation.js';
import type { StoredObject } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';
import type { ChangeLog } from './change-log.js';
import { put } from './committer.js';
import type { Committed, Restated } from './committer-messages.js';
import type { Rows } from './rows.js';

export class Publication {
  readonly #rows: Rows;
  readonly #changeLog: ChangeLog;
  readonly #format: (revision: Revision) => string;

  constructor(rows: Rows, changeLog: ChangeLog, format: (revision: Revision) => string) {
    this.#rows = rows;
    this.#changeLog = changeLog;
    this.#format = format;
  }

  of(mutations: readonly Mutation[], { decided, restated }: Committed): { changes: readonly Change[]; outcomes: readonly Outcome[] } {
    const changes: Change[] = [];
    const outcomes = mutations.map((mutation, i): Outcome => {
      const decision = decided[i];
      assert(decision !== undefined, 'the committer decides every mutation');
      if (decision.kind === 'refused') return decision;
      const change = this.#changeOf(mutation, decision.revision, decision.replaced);
      changes.push(change);
      return this.#outcomeOf(change);
    });
    for (const each of restated) changes.push(this.#restated(each));
    return { changes: changes.toSorted((a, b) => a.revision - b.revision), outcomes };
  }

  /** The body is the one that was sent: nothing is read back. */
  #changeOf(mutation: Mutation, revision: Revision, replaced: Revision): Change {
    const { key } = mutation;
    const resourceVersion = this.#format(revision);
    let read: { previous: StoredObject | undefined } | undefined;
    const previous = (): StoredObject | undefined => (read ??= { previous: this.#rows.object(replaced) }).previous;
    if (mutation.kind === 'delete') return { kind: 'delete', key, revision, resourceVersion, previous };
    return {
      kind: 'put',
      key,
      revision,
      object: { key, revision, resourceVersion, body: mutation.body },
      created: replaced === 0,
      previous,
    };
  }

  #outcomeOf(change: Change): Outcome {
    const object = change.kind === 'put' ? change.object : change.previous();
    assert(object !== undefined, 'what was just replaced is still there');
    return { kind: 'written', revision: change.revision, resourceVersion: this.#format(change.revision), object };
  }

  #restated({ key, revision, replaced }: Restated): Change {
    const resource = this.#rows.resourceIds(key.resource)[0] ?? 0;
    const change = this.#changeLog.change({ ...key, resource, kind: put, revision, replaced }, key);
    assert(change !== undefined, 'a survivor that was restated is there');
    return change;
  }
}
