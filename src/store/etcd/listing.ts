/** All keys of a range at one revision, page by page. */
import type { Revision } from '../../domain/revision.js';
import type { EtcdClient } from './client.js';
import type { KeyRange } from './follower.js';
import type { KeyValue } from './rpc.js';

export type ListedPage = Readonly<{ revision: Revision; kvs: readonly KeyValue[] }>;

/** `at`: the revision; 0: that which etcd has now. Throws EtcdError. */
export async function* listed(
  client: Pick<EtcdClient, 'range'>,
  { key, rangeEnd }: KeyRange,
  { at, pageKeysMax }: Readonly<{ at: Revision; pageKeysMax: number }>,
): AsyncGenerator<ListedPage> {
  let revision = at;
  for (let after: Uint8Array | undefined = key; after !== undefined;) {
    const page = await client.range({ key: after, rangeEnd, limit: pageKeysMax, revision });
    if (revision === 0) revision = page.revision;
    yield { revision, kvs: page.kvs };
    const last = page.kvs.at(-1);
    after = page.more && last !== undefined ? nextKey(last.key) : undefined;
  }
}

/** The first key behind it. */
function nextKey(key: Uint8Array): Uint8Array {
  const next = new Uint8Array(key.length + 1);
  next.set(key);
  return next;
}
