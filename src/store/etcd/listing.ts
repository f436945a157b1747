/** All keys of a range at one revision, page by page. */
import type { Revision } from '../../domain/revision.js';
import type { EtcdClient } from './client.js';
import type { KeyRange } from './follower.js';
import type { KeyValue, RangeResponse } from './rpc.js';

export type ListedPage = Readonly<{ revision: Revision; kvs: readonly KeyValue[] }>;

/** `at`: the revision; 0: that which etcd has now. The next page is asked for while one is worked on. Throws EtcdError. */
export async function* listed(
  client: Pick<EtcdClient, 'range'>,
  { key, rangeEnd }: KeyRange,
  { at, pageKeysMax }: Readonly<{ at: Revision; pageKeysMax: number }>,
): AsyncGenerator<ListedPage> {
  const ask = (after: Uint8Array, revision: Revision): Promise<RangeResponse> =>
    client.range({ key: after, rangeEnd, limit: pageKeysMax, revision });
  let revision = at;
  for (let asked: Promise<RangeResponse> | undefined = ask(key, at); asked !== undefined;) {
    const page: RangeResponse = await asked;
    if (revision === 0) revision = page.revision;
    const last = page.kvs.at(-1);
    asked = page.more && last !== undefined ? ask(nextKey(last.key), revision) : undefined;
    // Whoever stops reading does not wait for it.
    asked?.catch(() => {});
    yield { revision, kvs: page.kvs };
  }
}

/** The first key behind it. */
function nextKey(key: Uint8Array): Uint8Array {
  const next = new Uint8Array(key.length + 1);
  next.set(key);
  return next;
}
