/**
 * Lists all keys of a range at one revision, page by page. etcd counts the remaining keys for each
 * page, so few large pages are several times as fast as many small ones. But a page must arrive
 * within the time limit of a call. If a page is late, the request is repeated with fewer keys, and
 * all later pages are as small.
 *
 * Bound: two pages in memory, each of `pageBytes` if its objects are as large as those of the page
 * before. The next type may have larger objects. So a page that may reach into the next type has at
 * most `mixedKeysMax` keys, which gRPC can carry whatever their size. The first page has
 * `firstKeys`.
 */
import { setImmediate as immediately } from 'node:timers/promises';
import type { Revision } from '../../domain/revision.js';
import type { EtcdClient } from './client.js';
import { EtcdError } from './etcd-error.js';
import type { KeyRange } from './follower.js';
import type { KeyValue, RangeResponse } from './rpc.js';

const pageBytes = 4 * 1024 * 1024;
const firstKeys = 8;
const mixedKeysMax = 1_000;
export const pageKeysMax = 3_000;
const smaller = 8;
const slash = 0x2f;
/** Slashes behind the type: SHARD/CLUSTER/NAMESPACE/NAME. */
const placeSlashes = 3;
/** Keys handed out in one turn of the event loop: about three milliseconds of work. */
const turnKeysMax = 64;

export type ListedPage = Readonly<{ revision: Revision; kvs: readonly KeyValue[] }>;

/**
 * `at`: the revision; 0: etcd's newest. Requests the next page while the caller works on the
 * current one. Throws EtcdError.
 */
export async function* listed(
  client: Pick<EtcdClient, 'range'>,
  { key, rangeEnd }: KeyRange,
  { at, keysMax = pageKeysMax }: Readonly<{ at: Revision; keysMax?: number }>,
): AsyncGenerator<ListedPage> {
  let [revision, limit, limitMax, end] = [at, Math.min(firstKeys, keysMax), keysMax, rangeEnd];
  const ask = async (after: Uint8Array): Promise<RangeResponse> => {
    for (;;) {
      try {
        return await client.range({ key: after, rangeEnd: end, limit, revision });
      } catch (error) {
        // If a page of one key fails, or the first page gets no answer, the size is not the cause.
        const isSize = error instanceof EtcdError && (error.kind === 'too-large' || (error.kind === 'unknown' && after !== key));
        if (!isSize || limit === 1) throw error;
        limit = limitMax = Math.ceil(limit / smaller);
      }
    }
  };
  const askBehind = ({ kvs, more }: RangeResponse): Promise<RangeResponse> | undefined => {
    if (kvs.length > 0) limit = Math.min(limitMax, keysIn(pageBytes, kvs));
    const after = more ? nextKey(kvs.at(-1)!.key) : end;
    if (after === rangeEnd) return undefined;
    const typeEnd = more && limit > mixedKeysMax ? endOfType(kvs[0]!.key, kvs.at(-1)!.key) : undefined;
    end = typeEnd === undefined || Buffer.compare(typeEnd, rangeEnd) >= 0 ? rangeEnd : typeEnd;
    if (typeEnd === undefined) limit = Math.min(limit, mixedKeysMax);
    return ask(after);
  };
  for (let asked: Promise<RangeResponse> | undefined = ask(key); asked !== undefined;) {
    const page: RangeResponse = await asked;
    if (revision === 0) revision = page.revision;
    asked = askBehind(page);
    // If the caller stops reading, nobody awaits this request.
    asked?.catch(() => {});
    for (let from = 0; from === 0 || from < page.kvs.length; from += turnKeysMax) {
      // gRPC sends the request for the next page in this turn.
      await immediately();
      yield { revision, kvs: page.kvs.slice(from, from + turnKeysMax) };
    }
  }
}

function keysIn(bytes: number, kvs: readonly KeyValue[]): number {
  const taken = kvs.reduce((sum, { value }) => sum + value.length, 0);
  return Math.max(1, Math.floor((kvs.length * bytes) / Math.max(1, taken)));
}

function nextKey(key: Uint8Array): Uint8Array {
  const next = new Uint8Array(key.length + 1);
  next.set(key);
  return next;
}

/** The first key behind the type of both keys; undefined if they are of different types. */
function endOfType(one: Uint8Array, other: Uint8Array): Uint8Array | undefined {
  const differs = one.findIndex((byte, i) => byte !== other[i]);
  const last = one.subarray(0, differs === -1 ? one.length : differs).lastIndexOf(slash);
  const place = one.subarray(last + 1).filter((byte) => byte === slash);
  if (last === -1 || place.length > placeSlashes) return undefined;
  const end = Uint8Array.from(one.subarray(0, last + 1));
  end[last] = slash + 1;
  return end;
}
