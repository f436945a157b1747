/** Reads a Store to its end, so that tests can compare all of it. */
import type { Change } from '../../src/domain/change.js';
import { formatClientKey, type Key } from '../../src/domain/key.js';
import type { StoredObject } from '../../src/domain/object.js';
import type { Mutation, Outcome } from '../../src/domain/mutation.js';
import type { Store } from '../../src/domain/store-port.js';
import { halfRemoved } from '../../src/domain/push.js';
import type { Revision } from '../../src/domain/revision.js';
import { matches, type Scope } from '../../src/domain/scope.js';
import { until } from '../support/test-server.js';

type Reading = Readonly<{ revision?: Revision; between?: () => Promise<unknown> }>;

/** The objects of a scope at a revision, read page by page; `between` runs after every page. */
export async function list(
  store: Pick<Store, 'objects' | 'revisions'>,
  scope: Scope,
  { revision = store.revisions.published, between = async () => {} }: Reading = {},
): Promise<StoredObject[]> {
  const snapshot = store.objects.snapshot(scope, revision);
  const found: StoredObject[] = [];
  let after: Key | undefined;
  try {
    do {
      const page = await snapshot.page(after);
      found.push(...page.objects);
      after = page.next;
      await between();
    } while (after !== undefined);
  } finally {
    snapshot.close();
  }
  return found;
}

/** `list` as texts: each object and its revision. */
export async function listTexts(store: Pick<Store, 'objects' | 'revisions'>, scope: Scope, reading?: Reading): Promise<string[]> {
  return (await list(store, scope, reading)).map(textOf);
}

export async function changesBehind(
  store: Pick<Store, 'history' | 'revisions'>,
  scope: Scope,
  after: Revision,
  upTo = store.revisions.published,
): Promise<Change[]> {
  const all: Change[] = [];
  for (let position = after; position < upTo;) {
    const chunk = await store.history.changes(scope, { after: position, upTo }, (key) => matches(scope, key));
    all.push(...chunk.changes);
    position = chunk.upTo;
  }
  return all;
}

export async function touchedBehind(
  store: Pick<Store, 'history' | 'revisions'>,
  scope: Scope,
  after: Revision,
  upTo = store.revisions.published,
): Promise<string[]> {
  const all = new Set<string>();
  for await (const touched of store.history.touched(scope, { after, upTo })) for (const { key } of touched) all.add(keyText(key));
  return [...all].toSorted();
}

export type Written = Extract<Outcome, { kind: 'written' }>;

/** Submits a mutation; throws unless it is written. */
export async function mustWrite(store: Pick<Store, 'writer'>, mutation: Mutation): Promise<Written> {
  const outcome = await store.writer.submit(mutation);
  if (outcome.kind !== 'written') throw new Error(`not written: ${JSON.stringify(outcome)}`);
  return outcome;
}

/** Waits until the store has finished the removals that the previous process left undone. */
export async function removalsEnd(store: Pick<Store, 'state'>, look: () => void = () => {}): Promise<void> {
  await until(async () => {
    look();
    return halfRemoved([...store.state.shards], [...store.state.slices]).length === 0;
  });
}

export function keyText(key: Key): string {
  return `${key.shard}|${formatClientKey(key)}`;
}

export function textOf({ key, revision }: StoredObject): string {
  return `${key.shard}/${key.cluster}/${key.namespace === '' ? '' : `${key.namespace}/`}${key.name}@${revision}`;
}

/** One line for a change, with what a watcher can see. */
export function changeText(change: Change): string {
  const { key, revision, kind } = change;
  const previous = change.previous()?.revision ?? 0;
  return `${revision} ${kind === 'delete' ? 'delete' : change.created ? 'create' : 'update'} ${keyText(key)} of ${previous}`;
}
