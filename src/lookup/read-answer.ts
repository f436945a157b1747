/**
 * Parses a cache's response to a read. NotFound and Conflict are answers; anything else without an
 * object is a fault.
 *
 *   200  an object                           found
 *   404  a Status, reason NotFound           absent: the Status's details name the object, or only
 *                                            its type; an absent path has no details
 *   409  a Status, reason Conflict           ambiguous: the path leads to several logical clusters,
 *                                            or several shards have the object
 *        any other Status                    refused
 *        anything else, such as a 404        unreadable
 *        that a proxy made
 */
import { member, nestingMax, NotJson, scanObject, valueText } from '../json/object-text.js';
import { isJsonArray, isJsonObject, formatJson } from '../json/json-tree.js';
import { parseJson } from '../json/json-parser.js';
import { membersOf, textAt } from '../domain/base/members.js';
import { CacheFault } from './cache-fault.js';
import { readFreshnessReport, type FreshnessReport } from './freshness-report.js';
import { jsonValue } from '../json/json-value.js';

export type HttpAnswer = Readonly<{ status: number; text: string; retryAfterMs: number | undefined }>;

/** `text`: the object's JSON, unparsed, because JSON.parse would change integers beyond 2^53. */
export type CachedObject = Readonly<{ shard: string; text: string }>;

/** `type`: in the requested version. */
export type Missing = 'object' | 'path' | 'type';

export type ReadAnswer = Readonly<
  { kind: 'found'; object: CachedObject } | { kind: 'absent'; missing: Missing; message: string } | { kind: 'ambiguous'; message: string }
>;

/**
 * A look-up's answer. `report`: the cache's freshness `reportedAgoMs` before it answered; undefined
 * if the cache sent no readable report.
 */
export type LookedUp = Readonly<{ answer: ReadAnswer; report: FreshnessReport | undefined; reportedAgoMs: number }>;

/** `next`: the continue token for further objects of the list. */
export type ListPage = Readonly<{ objects: readonly CachedObject[]; next: string | undefined }>;

export type ListAnswer = Readonly<{ kind: 'page'; page: ListPage }> | Exclude<ReadAnswer, Readonly<{ kind: 'found' }>>;

/** Throws CacheFault. */
export function readObject(answer: HttpAnswer): ReadAnswer {
  return answer.status === 200 ? { kind: 'found', object: cachedObject(answer.text) } : readStatus(answer);
}

/**
 * Reads the answer of `GET /services/cache/look-up` (web/look-up.ts). Returns undefined if the
 * cache has no such route. Throws CacheFault.
 */
export function readLookUp(answer: HttpAnswer): LookedUp | undefined {
  if (answer.status === 404 || answer.status === 400) return undefined;
  if (answer.status !== 200) throw refusalOf(answer);
  const { code, body, freshness, reportedAgoMs } = membersOf(jsonValue(answer.text));
  if (typeof code !== 'number' || body === undefined || freshness === undefined)
    throw new CacheFault('unreadable', 'the answer is not a look-up of a Strata cache');
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
  if (!isJsonArray(items) || !isJsonObject(metadata)) throw new CacheFault('unreadable', 'the answer of the cache is not a list');
  const next = metadata.get('continue');
  const objects = items.map((item) => cachedObject(formatJson(item)));
  return { kind: 'page', page: { objects, next: typeof next === 'string' && next !== '' ? next : undefined } };
}

/** The fault for a response that is neither 200 nor, for this request, absent or ambiguous. */
export function refusalOf({ status, text, retryAfterMs }: HttpAnswer): CacheFault {
  const received = jsonValue(text);
  if (textAt(received, 'kind') !== 'Status')
    return new CacheFault('unreadable', `the server answered ${status} and is probably not a Strata cache`, { status });
  const [reason = '', message = ''] = [textAt(received, 'reason'), textAt(received, 'message')];
  return new CacheFault('refused', `the cache refused (${status}): ${message}`, { status, reason, retryAfterMs });
}

/** The text of a member, unparsed. Throws CacheFault. */
function textOf(name: string, text: string): string {
  try {
    const bytes = Buffer.from(text);
    const found = member(scanObject(bytes, nestingMax).top, name);
    return found === undefined ? '' : valueText(bytes, found);
  } catch (error) {
    if (error instanceof NotJson) throw new CacheFault('unreadable', 'the answer of the cache is not an object', { cause: error });
    throw error;
  }
}

/** An unreadable report must not hide an object that was found. */
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
  if (shard === undefined) throw new CacheFault('unreadable', 'the answer of the cache is not an object of a shard');
  return { shard, text };
}
