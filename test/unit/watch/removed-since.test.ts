/** Which keys a client that lists again must delete. Real stores: `contract/store-contract.ts`. */
import { test } from '../../support/test.js';
import type { History, Objects, Touch } from '../../../src/domain/store-port.js';
import { removedSince } from '../../../src/watch/removed-since.js';
import { aKey, aScope } from '../../support/objects.js';

const everything = { labels: [], fields: [] };

test('an object that was deleted and created again is not removed, even among more keys than are remembered', async (t) => {
  const again = aKey({ name: 'again' });
  const deleted = (name: string): Touch => ({ key: aKey({ name }), kind: 'delete', object: () => undefined });
  const put: Touch = { key: again, kind: 'put', object: () => undefined };
  const history = {
    async *touched() {
      yield [put];
      yield Array.from({ length: 200_001 }, (_, i) => deleted(`n${i}`));
      yield [deleted('again'), deleted('left')];
    },
  } as unknown as History;
  const found = (name: string) => (name === 'again' ? [{ key: again, revision: 5 }] : []);
  const objects = { find: async ({ name }: { name: string }) => found(name) } as unknown as Objects;

  const gone: string[] = [];
  for (const shard of ['*', 'amber'])
    for await (const keys of removedSince({ scope: aScope({ shard }), selector: everything }, { since: 1, at: 9 }, { history, objects }))
      gone.push(...keys.map(({ name }) => name));

  t.false(gone.includes('again'));
  t.deepEqual(
    gone.filter((name) => name === 'left'),
    ['left', 'left'],
  );
});
