/**
 * All keys of a range at one revision, page by page. etcd counts all keys that are left for each page, so few large pages are read several times as fast
 * as many small ones. But a page must come within the time that a call has: one that does not is asked for again, and it and all that follow are smaller.
 *
 * Bound: two pages in memory, each of `pageKeysMax` keys at most, and of `pageBytes` if its objects are as large as those of the page before.
 */
import { setImmediate as immediately } from 'node:timers/promises';
import type { Revision } from '../../domain/revision.js';
import type { EtcdClient } from './client.js';
import { EtcdError } from './etcd-error.js';
import type { KeyRange } from './follower.js';
import type { KeyValue, RangeResponse } from './rpc.js';

const pageBytes = 8 * 1024 * 1024;
const firstKeys = 250;
export const pageKeysMax = 3_000;
const smaller = 8;
/** About three milliseconds of work. */
const turnKeysMax = 64;

export type ListedPage = Readonly<{ revision: Revision; kvs: readonly KeyValue[] }>;

/** `at`: the revision; 0: that which etcd has now. The next page is asked for while one is worked on. Throws EtcdError. */
export async function* listed(
  client: Pick<EtcdClient, 'range'>,
  { key, rangeEnd }: KeyRange,
  { at, keysMax = pageKeysMax }: Readonly<{ at: Revision; keysMax?: number }>,
): AsyncGenerator<ListedPage> {
  let [revision, limit, limitMax] = [at, Math.min(firstKeys, keysMax), keysMax];
  const ask = async (after: Uint8Array): Promise<RangeResponse> => {
    for (;;) {
      try {
        return await client.range({ key: after, rangeEnd, limit, revision });
      } catch (error) {
        // Where not even one key comes, or none ever has, it is not for the size of the page.
        const mayBeSize = error instanceof EtcdError && error.kind === 'unknown' && limit > 1 && after !== key;
        if (!mayBeSize) throw error;
        limit = limitMax = Math.ceil(limit / smaller);
      }
    }
  };
  for (let asked: Promise<RangeResponse> | undefined = ask(key); asked !== undefined;) {
    const page: RangeResponse = await asked;
    if (revision === 0) revision = page.revision;
    const last = page.kvs.at(-1);
    limit = Math.min(limitMax, keysIn(pageBytes, page.kvs));
    asked = page.more && last !== undefined ? ask(nextKey(last.key)) : undefined;
    // Whoever stops reading does not wait for it.
    asked?.catch(() => {});
    for (let from = 0; from === 0 || from < page.kvs.length; from += turnKeysMax) {
      // Only now is it really asked.
      await immediately();
      yield { revision, kvs: page.kvs.slice(from, from + turnKeysMax) };
    }
  }
}

/** How many keys of that size take so many bytes. */
function keysIn(bytes: number, kvs: readonly KeyValue[]): number {
  const taken = kvs.reduce((sum, { value }) => sum + value.length, 0);
  return Math.max(1, Math.floor((kvs.length * bytes) / Math.max(1, taken)));
}

/** The first key behind it. */
function nextKey(key: Uint8Array): Uint8Array {
  const next = new Uint8Array(key.length + 1);
  next.set(key);
  return next;
}
