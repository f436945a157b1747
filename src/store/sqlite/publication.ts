/**
 * Turns a commit into changes for its followers, in rising revision, and into outcomes for its
 * writers, each in the writer's order.
 */
import type { BatchItem, PushDecision } from '../batch-item.js';
import assert from 'node:assert/strict';
import type { Change, MovedPath } from '../../domain/change.js';
import { namesOfType, type KeptNames } from '../../domain/kept-names.js';
import type { Key } from '../../domain/key.js';
import type { Outcome } from '../../domain/mutation.js';
import type { Body, StoredObject } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';
import type { Revisions } from '../../domain/store-port.js';
import type { Committed, Decided } from './committer-messages.js';
import type { MutationJob, Part, PushPart } from '../lane.js';
import type { Rows } from './rows.js';

/** The answer to a writer. It is sent after all followers have the commit. */
export type Answer =
  | Readonly<{ kind: 'mutation'; job: MutationJob; outcome: Outcome }>
  | Readonly<{ kind: 'pushes'; part: PushPart; outcomes: readonly PushDecision[] }>;

export class Publication {
  readonly #rows: Rows;
  readonly #revisions: Pick<Revisions, 'format'>;
  readonly #keptNames: KeptNames;
  /** Moves of paths in the commit that is being published. */
  #moves: ReadonlyMap<Revision, MovedPath> = new Map();

  constructor(rows: Rows, revisions: Pick<Revisions, 'format'>, keptNames: KeptNames) {
    this.#keptNames = keptNames;
    this.#rows = rows;
    this.#revisions = revisions;
  }

  changesOf(
    batch: readonly Part[],
    { decided, rewritten, swept, moves }: Pick<Committed, 'decided' | 'rewritten' | 'swept' | 'moves'>,
  ): { changes: readonly Change[]; answers: readonly Answer[] } {
    this.#moves = new Map(moves.map(({ revision, before, after }) => [revision, { before, after }]));
    const changes: Change[] = [];
    let next = 0;
    const decision = (): Decided => {
      const decidedNext = decided[next++];
      assert(decidedNext !== undefined, 'the committer decides everything it is asked');
      return decidedNext;
    };
    const answers = batch.map((part): Answer => {
      if (part.kind === 'mutation') return { kind: 'mutation', job: part, outcome: this.#outcomeOf(part, decision(), changes) };
      return { kind: 'pushes', part, outcomes: part.items.map((asked) => this.#pushOutcomeOf(asked, decision(), changes)) };
    });
    for (const { key, revision, replaced } of swept) changes.push(this.#changeOf(key, undefined, revision, replaced));
    for (const { key, revision, replaced } of rewritten) {
      const survivor = this.#rows.object(revision);
      assert(survivor !== undefined, 'a survivor that was written again is there');
      changes.push(this.#changeOf(key, survivor.body, revision, replaced));
    }
    return { changes: swept.length + rewritten.length === 0 ? changes : changes.toSorted((a, b) => a.revision - b.revision), answers };
  }

  #outcomeOf({ mutation }: MutationJob, decision: Decided, changes: Change[]): Outcome {
    if (decision.kind === 'refused') return decision;
    assert(decision.kind === 'written', 'a mutation is written or refused');
    const { revision, replaced } = decision;
    const change = this.#changeOf(mutation.key, mutation.kind === 'put' ? mutation.body : undefined, revision, replaced);
    changes.push(change);
    const object = change.kind === 'put' ? change.object : change.previous();
    assert(object !== undefined, 'what was just replaced is still there');
    return { kind: 'written', revision, resourceVersion: this.#revisions.format(revision), object };
  }

  #pushOutcomeOf(asked: BatchItem, decision: Decided, changes: Change[]): PushDecision {
    assert(decision.kind !== 'refused', 'a push says how things are: nothing it expects can fail');
    if (decision.kind !== 'written') return decision;
    assert('key' in asked, 'what writes has a key');
    const { revision, replaced } = decision;
    const isRead = asked.kind === 'upsert' && namesOfType(this.#keptNames, asked.key.resource) !== undefined;
    const sent = asked.kind === 'upsert' ? asked.body : undefined;
    changes.push(this.#changeOf(asked.key, isRead ? this.#rows.object(revision)?.body : sent, revision, replaced));
    return { kind: 'written', revision };
  }

  /**
   * `body`: as the writer sent it, or as read back if the committer may have changed it; undefined
   * for a delete.
   */
  #changeOf(key: Key, body: Body | undefined, revision: Revision, replaced: Revision): Change {
    const resourceVersion = this.#revisions.format(revision);
    let read: { previous: StoredObject | undefined } | undefined;
    const previous = (): StoredObject | undefined => (read ??= { previous: this.#rows.object(replaced) }).previous;
    const movedPath = this.#moves.get(revision);
    const change: Change =
      body === undefined
        ? { kind: 'delete', key, revision, resourceVersion, previous }
        : { kind: 'put', key, revision, object: { key, revision, resourceVersion, body }, created: replaced === 0, previous };
    return movedPath === undefined ? change : { ...change, movedPath };
  }
}
