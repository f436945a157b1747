/**
 * A client that lists again may name the revision that it had seen. `removedSince` finds the keys
 * (cluster, namespace, name) that the client must delete. They changed since that revision, and are
 * not in the client's view at `at`. Informers delete nothing on such a relist, so they would keep
 * these objects for ever.
 *
 * The log is read once, newest first: the first change of a key shows its state at `at`. If the
 * scope covers all shards, a key that is gone is then looked up on every shard, because the same
 * key may exist there.
 */
import { formatClientKey, type Key } from '../domain/key.js';
import { isSelected } from '../domain/object-metadata.js';
import type { History, Objects, Touch } from '../domain/store-port.js';
import type { Revision } from '../domain/revision.js';
import type { Scope } from '../domain/scope.js';
import { snapshotPages } from '../domain/snapshot-pages.js';
import { isEverything, type Selector } from '../domain/syntax/selector.js';

/**
 * How many keys are remembered. Beyond that all are forgotten, and a key may be reported twice.
 * From then on, even a scope of one shard looks up a key that is gone: a later put of the key may
 * be forgotten.
 */
const seenMax = 200_000;

export type RemovedSinceParts = Readonly<{ history: History; objects: Objects }>;

export async function* removedSince(
  { scope, selector }: Readonly<{ scope: Scope; selector: Selector }>,
  { since, at }: Readonly<{ since: Revision; at: Revision }>,
  { history, objects }: RemovedSinceParts,
): AsyncGenerator<readonly Key[]> {
  const seen = new Set<string>();
  let hasForgotten = false;
  for await (const touched of history.touched(scope, { after: since, upTo: at })) {
    if (seen.size > seenMax) {
      seen.clear();
      hasForgotten = true;
    }
    const gone: Key[] = [];
    for (const touch of touched) {
      const clientKey = formatClientKey(touch.key);
      if (seen.has(clientKey)) continue;
      seen.add(clientKey);
      if (!isInView(touch, selector) && !(await isStillInView(touch.key))) gone.push(touch.key);
    }
    if (gone.length > 0) yield gone;
  }

  async function isStillInView({ resource: { identity }, cluster, namespace, name }: Key): Promise<boolean> {
    if (scope.shard !== '*' && !hasForgotten) return false;
    const place = { ...scope, identity, cluster, namespace, name };
    const present = await objects.find(place);
    if (present.every((object) => object.revision <= at)) return present.some((object) => isSelected(object, selector));
    for await (const page of snapshotPages(objects.snapshot(place, at)))
      if (page.some((object) => isSelected(object, selector))) return true;
    return false;
  }
}

function isInView({ kind, object }: Touch, selector: Selector): boolean {
  if (kind === 'delete' || isEverything(selector)) return kind === 'put';
  const held = object();
  return held !== undefined && isSelected(held, selector);
}
