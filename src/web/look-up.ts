/**
 * Answers a look-up: one object, or why there is none, and how fresh this cache is for that, in one answer.
 *
 *   {"freshness": REPORT, "reportedAgoMs": 0, "code": 200, "body": OBJECT}     what GET of the object answers, and the freshness of its type on its shard
 *   {"freshness": REPORT, "reportedAgoMs": 70, "code": 404, "body": STATUS}    … on all shards, or on the one that was asked about: `whole` says whether it proves the absence
 *
 * LOOK-1 What is answered is what was here at one revision, at or after the moment that the report is about: it was read after the report, or nothing was published between
 *    the two. The other way round, a shard that finished its sync in between would seem to prove the absence of an object that came with it, and an old object would seem
 *    to be as fresh as a later report. Where several servers share a store, what another had acknowledged before the report is awaited before the object is read.
 * LOOK-2 Who may ask, and what they see, are those of GET: the object is read by the kube face, at the URL that GET has.
 *
 *   read: where is it? ──▶ report on that place ──▶ newest reached ──▶ read again, unless nothing was published ──▶ same place: answer
 *            ▲                                                                                                  └─▶ another place
 *            └────────────────────────────────────────────────────────────────────────────────────────────────────────────┘
 *
 * Bounds: `reportsMax` reports; what moves more often than that is answered without its freshness (null). A report on all shards is shared by those who accept its age (`Freshness.ofTypeLately`).
 */
import { Refused, type Refusal } from '../domain/errors.js';
import type { StoredObject } from '../domain/object.js';
import type { Freshness, RecentReport } from '../domain/ports.js';
import type { Revision } from '../domain/revision.js';
import type { ShardName } from '../domain/shard.js';
import type { Revisions } from '../domain/store-port.js';
import type { TypeFreshnessReport } from '../domain/type-freshness.js';
import { notAcceptable } from './accept.js';
import { answeredAs, type Answer, type Call, type KubePorts } from './call.js';
import { find } from './get.js';
import type { LookUpQuestion } from './look-up-question.js';
import { wholeForm } from './object-form.js';
import { encode, type Part } from './parts.js';
import { failure } from './status.js';

export type LookUpParts = Readonly<{
  freshness: Pick<Freshness, 'ofType' | 'ofTypeLately'>;
  revisions: Pick<Revisions, 'published' | 'reachNewest'>;
  /** Answers a GET of one object as the kube face does, but with `answerWith` in place of the verb. */
  get: (target: string, answerWith: (call: Call, ports: KubePorts) => Promise<Answer>) => Promise<unknown>;
}>;

/** `at`: nothing was published since then and until it was read, if that is what is published now. `shard`: undefined where no object, or more than one, was found. */
type Read = Readonly<{ at: Revision; shard: ShardName | undefined; code: number; body: readonly Part[]; isTypeKnown: boolean }>;

const reportsMax = 4;
/** Remembers a pure function: a report on all shards is shared, and has a hundred of them. */
const textsOfReports = new WeakMap<TypeFreshnessReport, string>();

/** Throws Refused for whatever GET is refused for, but that there is no such object (404), or more than one (409). */
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
      found = { object, body: wholeForm(call.type, call.path.version).single(object, object.resourceVersion) };
      return { kind: 'streamed' };
    });
  } catch (error) {
    if (!(error instanceof Refused) || !isAnswer(error.refusal)) throw error;
    const { code, text } = failure(error.refusal);
    return { at, shard: undefined, code, body: [encode(text)], isTypeKnown: !isOfType(error.refusal) };
  }
  if (found === undefined) throw new Error('a GET was answered without reading an object');
  return { at, shard: found.object.key.shard, code: 200, body: found.body, isTypeKnown: true };
}

function answerOf({ code, body, isTypeKnown }: Read, reported: RecentReport | undefined): Answer {
  // That nobody serves a type, or a version of it, proves nothing of its objects.
  const report = reported && (isTypeKnown ? reported.report : { ...reported.report, whole: false });
  const opening = `{"freshness":${report === undefined ? 'null' : textOf(report)},"reportedAgoMs":${reported?.agoMs ?? null},"code":${code},"body":`;
  return { kind: 'bytes', code: 200, contentType: 'application/json', parts: [encode(opening), ...body, '}'] };
}

function textOf(report: TypeFreshnessReport): string {
  const known = textsOfReports.get(report);
  if (known !== undefined) return known;
  const text = JSON.stringify(report);
  textsOfReports.set(report, text);
  return text;
}

function isAnswer({ reason }: Refusal): boolean {
  return reason === 'NotFound' || reason === 'Conflict';
}

/** Whether it is the type that is not found. A path that leads nowhere has no details, and an object that is not there a name. */
function isOfType({ details }: Refusal): boolean {
  return details !== undefined && details.name === undefined;
}
