/**
 * One request of an operator to a cache: over TLS, with a client certificate. The cache answers
 * JSON or a Status.
 *
 * Each error is one sentence that says what to check. `lookup/cache-connection.ts` has the bounds.
 */
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { jsonValue } from '../json/json-value.js';
import { faultOfDates } from '../certificates/pair-files.js';
import { certificateFaultOf, explainCertificateFault } from '../domain/base/certificate-fault.js';
import { CacheFault } from '../lookup/cache-fault.js';
import { CacheConnection, type CacheMethod } from '../lookup/cache-connection.js';
import type { CacheReaderParts } from '../lookup/cache-reader.js';
import type { HttpAnswer } from '../lookup/read-answer.js';
import { openCacheAccess, type CacheAccess, type CacheOptions } from './cache-access.js';

type Question = Readonly<{ method: CacheMethod; path: string }>;

const answerBytesMax = 64 * 1024 * 1024;

/** The JSON text of a successful answer. Throws CacheError for everything else. */
export async function requestCache(parts: { clock: Clock }, options: CacheOptions, question: Question): Promise<string> {
  return requestOver(parts, await openCacheAccess(options), question);
}

export async function requestOver({ clock }: { clock: Clock }, access: CacheAccess, question: Question): Promise<string> {
  const answer = await exchange({ clock }, access, question);
  const { status, text } = answer;
  const received = jsonValue(text);
  if (status >= 200 && status < 300 && received !== undefined) return text;
  throw new CacheError(refusalOf(status, received, access, clock.wallMs()));
}

/**
 * A connection for a `CacheReader`. It sends one request at a time, and throws the errors of
 * `requestCache`.
 */
export async function openQuestions(parts: { clock: Clock }, options: CacheOptions): Promise<CacheReaderParts['connection']> {
  const access = await openCacheAccess(options);
  return { ask: (path) => exchange(parts, access, { method: 'GET', path }), close: () => {} };
}

/** The text of the cache's status report. Throws as `requestCache` does. */
export function requestStatus(parts: { clock: Clock }, options: CacheOptions): Promise<string> {
  return requestCache(parts, options, { method: 'GET', path: '/services/cache/status' });
}

/** The output of a command: a sentence for people, or the answer itself for programs. */
export function answered({ output }: Pick<CacheOptions, 'output'>, answer: string, sentence: string): string {
  return `${output === 'json' ? answer.trimEnd() : sentence}\n`;
}

/** A count in an answer. `received`: the counted things, for the error. */
export function countOf(answer: string, member: string, received: string): number {
  const count = (JSON.parse(answer) as Readonly<Record<string, unknown>> | null)?.[member];
  if (typeof count === 'number') return count;
  throw new CacheError(`the answer does not say how many ${received}, so no Strata cache sent it`);
}

async function exchange({ clock }: { clock: Clock }, access: CacheAccess, { method, path }: Question): Promise<HttpAnswer> {
  const { cache, timeoutMs, cert, key, ca, serverName } = access;
  const identity = { ca, certificate: cert, key, ...(serverName === undefined ? {} : { serverName }) };
  const options = { cache, timeoutMs, answerBytesMax, connectionsMax: 1, questionsMax: 1 };
  const connection = new CacheConnection({ clock, identity: () => identity }, options);
  try {
    return await connection.ask(path, undefined, method);
  } catch (fault) {
    throw fault instanceof CacheFault && fault.kind === 'unreachable'
      ? new CacheError(complaintOf(fault.cause, access, clock.wallMs()), { cause: fault.cause })
      : fault;
  } finally {
    connection.close();
  }
}

function complaintOf(cause: unknown, { cache, caSource }: CacheAccess, wallMs: number): string {
  const fault = certificateFaultOf(cause);
  const trusted = caSource === undefined ? 'Node trusts; give its CA as --ca-file' : `a CA in ${caSource} signed`;
  if (fault !== undefined) return explainCertificateFault(fault, { server: cache, trusted, wallMs });
  switch (memberOf(cause, 'code')) {
    case 'ECONNREFUSED':
      return `nothing listens at ${cache}`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the host of ${cache} is unknown`;
    default:
      return `${cache} cannot be reached`;
  }
}

/** A Status contains the reason. A text that is no Status is not from a cache. */
function refusalOf(status: number, received: unknown, { cache, cert }: CacheAccess, wallMs: number): string {
  const message = memberOf(received, 'message');
  if (typeof message !== 'string') return `${cache} answered ${status} and is probably not a Strata cache`;
  const isNobody = status === 403 && message.includes('"system:anonymous"');
  const fault = faultOfDates(cert, wallMs);
  const why = fault === undefined ? 'the cache does not know its CA, or its clock differs' : `it ${fault}`;
  return `${cache} refused (${status}): ${message}${isNobody ? `; the client certificate names nobody: ${why}` : ''}`;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
