/**
 * Answers a look-up: the object, or the reason for its absence, and the freshness of that answer.
 *
 *   {"freshness": REPORT, "reportedAgoMs": 0, "code": 200, "body": OBJECT}
 *       what GET answers, and the freshness of the object's type on its shard
 *   {"freshness": REPORT, "reportedAgoMs": 70, "code": 404, "body": STATUS}
 *       what GET answers, and the freshness on all shards, or on the shard in the question;
 *       `whole`: whether 404 is proven
 *
 * LOOK-1 The answer shows the state at one revision, no older than the report. Either the object
 *    was read after the report, or nothing was published in between. Otherwise a shard could
 *    finish its sync after the read and before the report. The report would then seem to prove that
 *    an object of that sync does not exist. An old object would seem as fresh as the report. If
 *    several servers share a store, the read waits for everything acknowledged before the report.
 * LOOK-2 The caller needs the rights of a GET, because the kube face reads the object at its URL.
 *
 *   1. Read the object: on which shard is it?
 *   2. Make a report on that shard, or on all shards if the object is on none or on several.
 *   3. Wait for the newest state. Read again, unless nothing was published since.
 *   4. If the shard is the same, answer. If it is another one, go to 2.
 *
 * Bounds: `reportsMax` reports. If the object moves more often, the answer has no freshness (null).
 * Callers share a report on all shards if they accept its age (`Freshness.ofTypeLately`).
 */
import { entryOf } from '../domain/base/entry-of.js';
import { Refused, type Refusal } from '../domain/errors.js';
import type { StoredObject } from '../domain/object.js';
import type { Freshness, RecentReport } from '../domain/ports.js';
import type { Revision } from '../domain/revision.js';
import type { ShardName } from '../domain/shard.js';
import type { Revisions } from '../domain/store-port.js';
import type { TypeFreshnessReport } from '../domain/type-freshness.js';
import { notAcceptable } from './formats/accept.js';
import { answeredAs, type Answer, type Call, type KubePorts } from './kube/call.js';
import { find } from './kube/get.js';
import type { LookUpQuestion } from './route-questions.js';
import { fullForm } from './formats/object-form.js';
import { encode, type Part } from './formats/parts.js';
import { failure } from './formats/status.js';

export type LookUpParts = Readonly<{
  freshness: Pick<Freshness, 'ofType' | 'ofTypeLately'>;
  revisions: Pick<Revisions, 'published' | 'reachNewest'>;
  /**
   * Answers a GET of one object as the kube face does, but calls `answerWith` instead of the verb.
   */
  get: (target: string, answerWith: (call: Call, ports: KubePorts) => Promise<Answer>) => Promise<unknown>;
}>;

/**
 * `at`: the published revision just before the read. While it stays the published one, the read
 * shows the newest state. `shard`: undefined if no object was found, or more than one.
 */
type Read = Readonly<{ at: Revision; shard: ShardName | undefined; code: number; body: readonly Part[]; isTypeKnown: boolean }>;

const reportsMax = 4;
/**
 * Formats each report once, because many callers share a report, which may list a hundred shards.
 */
const textsOfReports = new WeakMap<TypeFreshnessReport, string>();

/** Throws Refused as GET does, but 404 (no such object) and 409 (more than one) become answers. */
export async function lookUp(
  { type, reportAgeMaxMs, target }: LookUpQuestion,
  { freshness, revisions, get }: LookUpParts,
): Promise<Answer> {
  const read = (): Promise<Read> => readAt(revisions.published, (answerWith) => get(target, answerWith));
  let last = type.shard === undefined ? await read() : undefined;
  for (let reports = 1; ; reports += 1) {
    const shard = type.shard ?? last?.shard;
    const reported =
      shard === undefined
        ? await freshness.ofTypeLately(type, reportAgeMaxMs)
        : { report: await freshness.ofType({ ...type, shard }), agoMs: 0 };
    await revisions.reachNewest();
    if (last?.at !== revisions.published) last = await read();
    if (type.shard !== undefined || last.shard === shard) return answerOf(last, reported);
    if (reports === reportsMax) return answerOf(last, undefined);
  }
}

async function readAt(
  at: Revision,
  get: (answerWith: (call: Call, ports: KubePorts) => Promise<Answer>) => Promise<unknown>,
): Promise<Read> {
  let found: Readonly<{ object: StoredObject; body: readonly Part[] }> | undefined;
  try {
    await get(async (call, ports) => {
      const { form, encoding } = answeredAs(call, 'one');
      if (form !== 'object' || encoding !== 'json') throw new Refused(notAcceptable());
      const object = await find(call, ports);
      found = { object, body: fullForm(call.type, call.path.version).single(object, object.resourceVersion) };
      return { kind: 'streamed' };
    });
  } catch (error) {
    if (!(error instanceof Refused) || !['NotFound', 'Conflict'].includes(error.refusal.reason)) throw error;
    const { code, text } = failure(error.refusal);
    return { at, shard: undefined, code, body: [encode(text)], isTypeKnown: !isOfType(error.refusal) };
  }
  if (found === undefined) throw new Error('a GET was answered without reading an object');
  return { at, shard: found.object.key.shard, code: 200, body: found.body, isTypeKnown: true };
}

function answerOf({ code, body, isTypeKnown }: Read, reported: RecentReport | undefined): Answer {
  // If the type or its requested version is not served, the report proves nothing about its
  // objects.
  const report = reported && (isTypeKnown ? reported.report : { ...reported.report, whole: false });
  const text = report === undefined ? 'null' : entryOf(textsOfReports, report, () => JSON.stringify(report));
  const opening = `{"freshness":${text},"reportedAgoMs":${reported?.agoMs ?? null},"code":${code},"body":`;
  return { kind: 'bytes', code: 200, contentType: 'application/json', parts: [encode(opening), ...body, '}'] };
}

/**
 * Whether the type was not found. The refusal for an unknown path has no details; the one for a
 * missing object has its name.
 */
function isOfType({ details }: Refusal): boolean {
  return details !== undefined && details.name === undefined;
}
