/**
 * What a cache's answer to a read means. NotFound and ambiguous are answers; everything else that has no object is a fault.
 *
 *   200  an object                                     found
 *   404  a Status with the reason NotFound             absent: its details name the object, or only the type; a path has none
 *   409  a Status with the reason Conflict             ambiguous: the path leads to several clusters, or several shards have the object
 *        any other Status                              refused
 *        anything else, a 404 of a proxy for example   unreadable
 */
import { member, nestingMax, NotJson, scanObject, valueText } from '../json/object-text.js';
import { isJsonArray, isJsonObject, formatJson } from '../json/json-tree.js';
import { parseJson } from '../json/json-parser.js';
import { membersOf } from '../domain/members.js';
import { textAt } from '../domain/text-at.js';
import { CacheFault } from './cache-fault.js';
import { readFreshnessReport, type FreshnessReport } from './freshness-report.js';
import { jsonValue } from '../json/json-value.js';

export type HttpAnswer = Readonly<{ status: number; text: string; retryAfterMs: number | undefined }>;

/** An object as the cache has it: `text` is its JSON, not re-serialised, because int64 beyond 2^53 would not survive that. */
export type CachedObject = Readonly<{ shard: string; text: string }>;

/** What the cache does not know: the object, the canonical path that should lead to it, or its type in that version. */
export type Missing = 'object' | 'path' | 'type';

export type ReadAnswer = Readonly<
  { kind: 'found'; object: CachedObject } | { kind: 'absent'; missing: Missing; message: string } | { kind: 'ambiguous'; message: string }
>;

/** What a look-up found, and how fresh the cache was for that `reportedAgoMs` before it answered. `report`: undefined where it gave none that can be read. */
export type LookedUp = Readonly<{ answer: ReadAnswer; report: FreshnessReport | undefined; reportedAgoMs: number }>;

/** Objects of a list, and the token that leads to more of them. */
export type ListPage = Readonly<{ objects: readonly CachedObject[]; next: string | undefined }>;

export type ListAnswer = Readonly<{ kind: 'page'; page: ListPage }> | Exclude<ReadAnswer, Readonly<{ kind: 'found' }>>;

/** Throws CacheFault. */
export function readObject(answer: HttpAnswer): ReadAnswer {
  return answer.status === 200 ? { kind: 'found', object: cachedObject(answer.text) } : readStatus(answer);
}

/** From the answer of `GET /services/cache/look-up` (web/look-up.ts); undefined when the cache has no such route. Throws CacheFault. */
export function readLookUp(answer: HttpAnswer): LookedUp | undefined {
  if (answer.status === 404 || answer.status === 400) return undefined;
  if (answer.status !== 200) throw refusalOf(answer);
  const { code, body, freshness, reportedAgoMs } = membersOf(jsonValue(answer.text));
  if (typeof code !== 'number' || body === undefined || freshness === undefined)
    throw new CacheFault('unreadable', 'what the cache answered is no look-up');
  const text = code === 200 ? textOf('body', answer.text) : JSON.stringify(body);
  const isReported = typeof reportedAgoMs === 'number';
  return {
    answer: readObject({ status: code, text, retryAfterMs: undefined }),
    report: isReported ? readReport(freshness) : undefined,
    reportedAgoMs: isReported ? reportedAgoMs : 0,
  };
}

/** Throws CacheFault. */
export function readList(answer: HttpAnswer): ListAnswer {
  if (answer.status !== 200) return readStatus(answer);
  const list = parseJson(answer.text);
  const members = list.kind === 'parsed' && isJsonObject(list.value) ? list.value : undefined;
  const items = members?.get('items');
  const metadata = members?.get('metadata');
  if (!isJsonArray(items) || !isJsonObject(metadata)) throw new CacheFault('unreadable', 'what the cache answered is no list');
  const next = metadata.get('continue');
  const objects = items.map((item) => cachedObject(formatJson(item)));
  return { kind: 'page', page: { objects, next: typeof next === 'string' && next !== '' ? next : undefined } };
}

/** The fault for any answer but a 200, where none can be absent or ambiguous. */
export function refusalOf({ status, text, retryAfterMs }: HttpAnswer): CacheFault {
  const received = jsonValue(text);
  if (textAt(received, 'kind') !== 'Status')
    return new CacheFault('unreadable', `it answered ${status} and is probably no cache`, { status });
  const [reason = '', message = ''] = [textAt(received, 'reason'), textAt(received, 'message')];
  return new CacheFault('refused', `the cache refused (${status}): ${message}`, { status, reason, retryAfterMs });
}

/** A member as it came. Throws CacheFault. */
function textOf(name: string, text: string): string {
  try {
    const bytes = Buffer.from(text);
    const found = member(scanObject(bytes, nestingMax).top, name);
    return found === undefined ? '' : valueText(bytes, found);
  } catch (error) {
    if (error instanceof NotJson) throw new CacheFault('unreadable', 'what the cache answered is no object', { cause: error });
    throw error;
  }
}

/** An object that is there is found, whatever is said of its freshness. */
function readReport(value: unknown): FreshnessReport | undefined {
  try {
    return readFreshnessReport(value);
  } catch (error) {
    if (error instanceof CacheFault) return undefined;
    throw error;
  }
}

function readStatus(answer: HttpAnswer): Exclude<ReadAnswer, Readonly<{ kind: 'found' }>> {
  const received = jsonValue(answer.text);
  const message = textAt(received, 'message') ?? '';
  if (textAt(received, 'kind') === 'Status') {
    const reason = textAt(received, 'reason');
    if (answer.status === 404 && reason === 'NotFound') return { kind: 'absent', missing: missingOf(received), message };
    if (answer.status === 409 && reason === 'Conflict') return { kind: 'ambiguous', message };
  }
  throw refusalOf(answer);
}

function missingOf(received: unknown): Missing {
  if (textAt(received, 'details', 'name') !== undefined) return 'object';
  return typeof received === 'object' && received !== null && 'details' in received ? 'type' : 'path';
}

function cachedObject(text: string): CachedObject {
  const shard = textAt(jsonValue(text), 'metadata', 'annotations', 'kcp.io/shard');
  if (shard === undefined) throw new CacheFault('unreadable', 'what the cache answered is no object of a shard');
  return { shard, text };
}
