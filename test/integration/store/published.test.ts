/**
 * Between the moment a commit is durable and the tick in which it is published, readers must see
 * the former state.
 */
import { performance } from 'node:perf_hooks';
import { test } from '../../support/test.js';
import { aDelete, aKey, aPut, aScope } from '../../support/objects.js';
import { list, mustWrite, textOf } from '../../contract/read-all.js';
import { SqliteEngine } from '../../support/store/sqlite-engine.js';

/** Long enough for the committer's thread to commit while this thread does not end its tick. */
const heldMs = 150;

test('a durable commit is invisible until it is published: a create, an update, a delete, or a delete and a create', async (t) => {
  // A batch of fillers first; then a batch with the mutations under test.
  const { store } = await SqliteEngine.start(t, { queue: { batchMutationsMax: 8 } });
  const names = ['updated', 'deleted', 'replaced', 'twice'];
  for (const name of names) await mustWrite(store, aPut({ name, namespace: 'x' }, 'absent'));
  const fillers = Array.from({ length: 8 }, (_, i) => store.writer.submit(aPut({ name: `filler${i}` }, 'absent')));
  const place = (name: string) => ({ name, namespace: 'x' });
  const waiting = [
    aPut(place('updated'), 1),
    aDelete(place('deleted')),
    aDelete(place('replaced')),
    aPut(place('replaced'), 'absent'),
    aDelete(place('twice')),
    aPut(place('twice'), 'absent'),
    aDelete(place('twice')),
    aPut(place('created'), 'absent'),
  ].map((mutation) => store.writer.submit(mutation));
  await Promise.all(fillers);
  const { published } = store.revisions;
  t.is(published, names.length + fillers.length);

  const reads: Promise<unknown>[] = [];
  for (const start = performance.now(); performance.now() - start < heldMs;) {
    for (const [i, name] of names.entries()) {
      reads.push(store.objects.get(aKey(place(name))).then((object) => t.is(object?.revision, i + 1, `get ${name}`)));
      reads.push(
        store.objects.find(aScope({ ...place(name), cluster: 'acme' })).then((found) =>
          t.deepEqual(
            found.map(({ revision }) => revision),
            [i + 1],
            `find ${name}`,
          ),
        ),
      );
    }
    reads.push(store.objects.get(aKey(place('created'))).then((object) => t.is(object, undefined)));
    reads.push(store.objects.find(aScope({ ...place('created'), cluster: 'acme' })).then((found) => t.deepEqual(found, [])));
    const snapshot = store.objects.snapshot(aScope({ namespace: 'x' }), published);
    reads.push(
      snapshot
        .page(undefined)
        .then(({ objects }) =>
          t.is(objects.map(textOf).join(), 'amber/acme/x/deleted@2,amber/acme/x/replaced@3,amber/acme/x/twice@4,amber/acme/x/updated@1'),
        ),
    );
    snapshot.close();
  }
  t.is(store.revisions.published, published, 'the tick has not ended');
  await Promise.all(reads);
  await Promise.all(waiting);

  t.is((await list(store, aScope({ namespace: 'x' }))).length, 3);
});
