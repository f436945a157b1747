/**
 * The HTTP application: health for everybody; metrics, status and the kube face for callers who may
 * read them. A handler's refusal is answered with its Status, any other error with a 500 and a log
 * line.
 *
 *   below a logical cluster ─────────────────▶ kube face ─▶ respond.ts
 *   everything else ─▶ koa ─▶ routes.ts, or ─▶ kube face
 *
 * Requests for objects bypass koa, because koa adds a quarter to the serving thread's time for a
 * GET.
 */
import { setTimeout as delay } from 'node:timers/promises';
import Koa, { type Context } from 'koa';
import { BoundedLog, shown } from '../diagnostics/bounded-log.js';
import type { Log } from '../diagnostics/log.js';
import { mayRead, type Caller } from '../domain/caller.js';
import { badRequest, loggedRefusal, Refused, type Refusal } from '../domain/errors.js';
import { cacheServer, serverHeader } from '../domain/base/http-header.js';
import type { Clock } from '../domain/ports.js';
import type { Exchange } from '../http/exchange.js';
import type { KubePorts } from './kube/call.js';
import { consoleRoutes, type ConsoleParts, type ReadObjects } from './console-routes.js';
import { answer } from './kube/kube-face.js';
import type { Verb } from './kube/kube-request.js';
import { respond, respondRefused } from './respond.js';
import { routes, type GetObject, type RouteParts } from './routes.js';
import { failure } from './formats/status.js';
import { parseTarget, withoutQuery } from './target.js';

/** `console`: undefined if the console is off. */
export type AppParts = RouteParts & Readonly<{ ports: KubePorts; version: string; console: ConsoleParts | undefined }>;

export type AppOptions = Readonly<{ syntheticDelayMs: number; requestTimeoutMs: number; writeTimeoutMs: number; accessLog: boolean }>;

export type App = (exchange: Exchange, refusal: Error | undefined) => void;

/**
 * `verb`: undefined until it is known, and for a request without one. `caller`: the caller of the
 * console's session, if the connection has no certificate.
 */
type Asked = { readonly exchange: Exchange; readonly refusal: Error | undefined; verb: Verb | undefined; caller?: Caller };

/** Writes of one object, which have a shorter timeout than a delete of a collection. */
const writes: readonly Verb[] = ['create', 'update', 'patch', 'delete'];
const changing: readonly Verb[] = [...writes, 'deletecollection'];

export function createApp(parts: AppParts, options: AppOptions): App {
  const requestLog = new RequestLog({ clock: parts.ports.clock, log: parts.log });
  const serveAsked = (asked: Asked, handle: () => Promise<void>): Promise<void> => serve(asked, handle, { ...parts, requestLog }, options);
  const koa = new Koa();
  koa.silent = true;
  /**
   * Koa creates a request's context, and begins to answer, before `throughKoa` returns. So the
   * context that koa creates belongs to this request.
   */
  let arriving: Asked | undefined;
  koa.use((context, next) => {
    const asked = (context.state['asked'] = arriving!);
    // The exchange sends the answer itself, because it counts the answer's bytes in memory.
    context.respond = false;
    return serveAsked(asked, next);
  });
  const askedOf = ({ state }: Context): Asked => state['asked'] as Asked;
  const exchangeOf = (context: Context): Exchange => askedOf(context).exchange;
  const getObject: GetObject = (context, target, answerWith) => {
    const asked = askedOf(context);
    const { exchange } = asked;
    return answer({ target, exchange, caller: exchange.caller, answerWith }, parts.ports, parts.version, (verb) => {
      asked.verb = verb;
      if (verb !== 'get') throw new Refused(badRequest('a look-up must get one object'));
    });
  };
  koa.use(routes({ ...parts.ports, ...parts }, exchangeOf, getObject).routes());
  const readObjects: ReadObjects = (context, target, caller) => {
    const asked = askedOf(context);
    asked.caller = caller;
    const noteVerb = (verb: Verb): void => {
      asked.verb = verb;
      assertRead(verb);
    };
    return answer({ target, exchange: asked.exchange, caller }, parts.ports, parts.version, noteVerb);
  };
  if (parts.console !== undefined) koa.use(consoleRoutes(parts.console, exchangeOf, readObjects).routes());
  koa.use((context) => kubeFace(askedOf(context), parts, options));
  const throughKoa = koa.callback();
  return (exchange, refusal) => {
    const asked: Asked = { exchange, refusal, verb: undefined };
    const { request, response } = exchange;
    response.setHeader(serverHeader, cacheServer);
    arriving = asked;
    const answered = isForKubeFace(request.url) ? serveAsked(asked, () => kubeFace(asked, parts, options)) : throughKoa(request, response);
    arriving = undefined;
    void answered.then(() => exchange.answered());
  };
}

/**
 * Whether koa has no route for the target. The kube face refuses invalid targets; koa would read
 * some of them as another path.
 */
function isForKubeFace(target = '/'): boolean {
  const path = withoutQuery(target);
  return (path.includes('/clusters/') && !path.startsWith('/console/')) || parseTarget(target).kind === 'refused';
}

/** Throws Refused(405) unless the verb only reads. */
function assertRead(verb: Verb): void {
  if (verb !== 'get' && verb !== 'list')
    throw new Refused({ reason: 'MethodNotAllowed', message: `the console supports only get and list, not ${verb}` });
}

type ServeParts = AppParts & Readonly<{ requestLog: RequestLog }>;

async function serve(asked: Asked, handle: () => Promise<void>, parts: ServeParts, options: AppOptions): Promise<void> {
  const { metrics, ports, requestLog } = parts;
  const { exchange, refusal } = asked;
  const startedMs = ports.clock.now();
  const observe = metrics.requestSeconds.time();
  try {
    if (refusal !== undefined) throw refusal;
    exchange.limit(options.requestTimeoutMs, () => cutShort(exchange));
    if (options.syntheticDelayMs > 0) await delay(options.syntheticDelayMs);
    await handle();
  } catch (error) {
    answerRefusal(asked, error, parts);
  }
  const { verb = 'other' } = asked;
  metrics.requests.add(1, { verb, code: String(exchange.response.statusCode) });
  if (verb !== 'watch') observe({ verb });
  if (options.accessLog) requestLog.answered(asked, ports.clock.now() - startedMs);
}

async function kubeFace(asked: Asked, { ports, version }: AppParts, { requestTimeoutMs, writeTimeoutMs }: AppOptions): Promise<void> {
  const { exchange } = asked;
  exchange.admit();
  const noteVerb = (verb: Verb): void => {
    asked.verb = verb;
    if (writes.includes(verb)) exchange.limit(Math.min(requestTimeoutMs, writeTimeoutMs), () => cutShort(exchange));
  };
  await respond(
    exchange,
    await answer({ target: exchange.request.url ?? '/', exchange, caller: exchange.caller }, ports, version, noteVerb),
  );
}

/** Ends a request whose time is up: with 504 if nothing has been sent, else by cutting it. */
function cutShort(exchange: Exchange): void {
  respondRefused(exchange, failure({ reason: 'Timeout', message: 'the request did not complete within its time' }));
  exchange.answered();
}

function answerRefusal(asked: Asked, error: unknown, parts: ServeParts): void {
  const { log, metrics, requestLog } = parts;
  const { exchange } = asked;
  const refusal = error instanceof Refused ? error.refusal : internalError;
  const { method, url = '/' } = exchange.request;
  if (!(error instanceof Refused)) log.error('request.failed', { method, path: withoutQuery(url), error });
  if (refusal.reason === 'Forbidden' || (asked.verb !== undefined && changing.includes(asked.verb))) requestLog.refused(asked, refusal);
  metrics.refusals.add(1, { reason: refusal.reason });
  respondRefused(exchange, failure(refusal));
}

const internalError: Refusal = {
  reason: 'InternalError',
  message: 'Internal error occurred',
  details: { causes: [{ message: 'the server has logged what happened' }] },
};

/** `caller`: set if it differs from the connection's caller. */
type LoggedRequest = Readonly<{ exchange: Exchange; verb: Verb | undefined; caller?: Caller }>;

/**
 * The access log and the audit lines of refusals. Neither contains queries or bodies, which may
 * hold secrets.
 */
class RequestLog {
  readonly #log: Log;
  /**
   * Separate limits, so that many conflicts between writers do not crowd out the lines of forbidden
   * callers.
   */
  readonly #forbidden: BoundedLog;
  readonly #refused: BoundedLog;
  readonly #strangers: BoundedLog;

  constructor(parts: Readonly<{ clock: Clock; log: Log }>) {
    this.#log = parts.log;
    this.#forbidden = new BoundedLog(parts);
    this.#refused = new BoundedLog(parts);
    this.#strangers = new BoundedLog(parts);
  }

  /**
   * A line of the access log; a watch gets one at its end. The lines of callers who may not read
   * are rate-limited.
   */
  answered({ exchange, verb, caller = exchange.caller }: LoggedRequest, tookMs: number): void {
    const { request, response } = exchange;
    const { method = 'GET', url = '/', httpVersion } = request;
    const path = shown(withoutQuery(url));
    const fields = { user: caller.user, verb: verb ?? method.toLowerCase(), path, code: response.statusCode, tookMs, httpVersion };
    (mayRead(caller) ? this.#log : this.#strangers).info('request.answered', fields);
  }

  /** The audit line: who was refused, for which request, and for a write also the reason. */
  refused({ exchange, verb }: LoggedRequest, refusal: Refusal): void {
    const { user, groups, speaksFor } = exchange.caller;
    const { method = 'GET', url = '/' } = exchange.request;
    const who = { user, groups, ...(speaksFor === undefined ? {} : { speaksFor }) };
    const what = { verb: verb ?? method.toLowerCase(), path: shown(withoutQuery(url)) };
    if (refusal.reason === 'Forbidden') this.#forbidden.warn('request.forbidden', { ...who, ...what });
    else this.#refused.info('request.refused', { ...who, ...what, ...loggedRefusal(refusal) });
  }
}
