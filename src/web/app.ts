/**
 * The HTTP application: health for everybody, metrics, status and the kube face for callers who may. What a handler throws is
 * answered here, once: a refusal as its Status, anything else as a 500 that is logged.
 *
 *   below a logical cluster ─────────────────▶ kube face ─▶ respond.ts
 *   everything else ─▶ koa ─▶ routes.ts, or ─▶ kube face
 *
 * Requests for objects go past koa, with which a get takes a quarter more of the serving thread.
 */
import { setTimeout as delay } from 'node:timers/promises';
import Koa, { type Context } from 'koa';
import { Refused, type Refusal } from '../domain/errors.js';
import { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Exchange } from '../http/exchange.js';
import type { KubePorts } from './call.js';
import { answer, withoutQuery } from './kube-face.js';
import type { Verb } from './kube-request.js';
import { respond, respondRefused } from './respond.js';
import { routes, type RouteParts } from './routes.js';
import { failure } from './status.js';

export type AppParts = RouteParts & Readonly<{ ports: KubePorts; version: string }>;

export type AppLimits = Readonly<{ syntheticDelayMs: number; requestTimeoutMs: number; writeTimeoutMs: number }>;

/** Answers one request; `refusal`: why it must be refused. */
export type App = (exchange: Exchange, refusal: Error | undefined) => void;

/** `verb`: undefined until it is known, and of what has none. */
type Asked = { readonly exchange: Exchange; readonly refusal: Error | undefined; verb: Verb | undefined };

/** Writes of one object: a collection may take as long as a list. */
const writes: readonly Verb[] = ['create', 'update', 'patch', 'delete'];

export function createApp(parts: AppParts, limits: AppLimits): App {
  const audit = new BoundedLog({ clock: parts.ports.clock, log: parts.log });
  const serveAsked = (asked: Asked, handle: () => Promise<void>): Promise<void> => serve(asked, handle, { ...parts, audit }, limits);
  const koa = new Koa();
  koa.silent = true;
  /** Koa makes a request's context, and begins to answer it, within the call that hands it over. */
  let arriving: Asked | undefined;
  koa.use((context, next) => {
    const asked = (context.state['asked'] = arriving!);
    // The exchange is answered by itself: it counts what is in memory of its answer.
    context.respond = false;
    return serveAsked(asked, next);
  });
  const askedOf = ({ state }: Context): Asked => state['asked'] as Asked;
  koa.use(routes({ ...parts, clock: parts.ports.clock }, (context) => askedOf(context).exchange).routes());
  koa.use((context) => kubeFace(askedOf(context), parts, limits));
  const throughKoa = koa.callback();
  return (exchange, refusal) => {
    const asked: Asked = { exchange, refusal, verb: undefined };
    const { request, response } = exchange;
    arriving = asked;
    const answered = isOfObjects(request.url) ? serveAsked(asked, () => kubeFace(asked, parts, limits)) : throughKoa(request, response);
    arriving = undefined;
    void answered.then(() => exchange.answered());
  };
}

/** Whether no route of koa can be meant. */
function isOfObjects(target = '/'): boolean {
  return target.includes('/clusters/');
}

type ServeParts = AppParts & Readonly<{ audit: BoundedLog }>;

async function serve(asked: Asked, handle: () => Promise<void>, parts: ServeParts, limits: AppLimits): Promise<void> {
  const { metrics, ports } = parts;
  const { exchange, refusal } = asked;
  const startedMs = ports.clock.now();
  try {
    if (refusal !== undefined) throw refusal;
    exchange.limit(limits.requestTimeoutMs, () => cutShort(exchange));
    if (limits.syntheticDelayMs > 0) await delay(limits.syntheticDelayMs);
    await handle();
  } catch (error) {
    answerRefusal(asked, error, parts);
  }
  const { verb = 'other' } = asked;
  metrics.requests.add(1, { verb, code: String(exchange.response.statusCode) });
  if (verb !== 'watch') metrics.requestSeconds.observe((ports.clock.now() - startedMs) / 1000, { verb });
}

async function kubeFace(asked: Asked, { ports, version }: AppParts, { requestTimeoutMs, writeTimeoutMs }: AppLimits): Promise<void> {
  const { exchange } = asked;
  exchange.admit();
  const noteVerb = (verb: Verb): void => {
    asked.verb = verb;
    if (writes.includes(verb)) exchange.limit(Math.min(requestTimeoutMs, writeTimeoutMs), () => cutShort(exchange));
  };
  await respond(exchange, await answer({ target: exchange.request.url ?? '/', exchange }, ports, version, noteVerb));
}

/** A request whose time is up: 504 while nothing has been sent yet, else it is cut. */
function cutShort(exchange: Exchange): void {
  const { response } = exchange;
  if (response.headersSent) return exchange.cut();
  const { code, text } = failure({ reason: 'Timeout', message: 'the request did not complete within its time' });
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(text);
  exchange.answered();
}

function answerRefusal(asked: Asked, error: unknown, parts: ServeParts): void {
  const { log, metrics } = parts;
  const { exchange } = asked;
  const refusal = error instanceof Refused ? error.refusal : internalError;
  const { method, url = '/' } = exchange.request;
  if (!(error instanceof Refused)) log.error('request.failed', { method, path: withoutQuery(url), error });
  if (refusal.reason === 'Forbidden') logForbidden(asked, parts);
  metrics.refusals.add(1, { reason: refusal.reason });
  respondRefused(exchange, failure(refusal));
}

/** The audit line: who was refused what. Never the query or the body, which may hold anything. */
function logForbidden({ exchange, verb }: Asked, { audit }: ServeParts): void {
  const { user, groups, speaksFor } = exchange.caller;
  const { method = 'GET', url = '/' } = exchange.request;
  const who = { user, groups, ...(speaksFor === undefined ? {} : { speaksFor }) };
  audit.warn('request.forbidden', { ...who, verb: verb ?? method.toLowerCase(), path: withoutQuery(url) });
}

const internalError: Refusal = {
  reason: 'InternalError',
  message: 'Internal error occurred',
  details: { causes: [{ message: 'the server has logged what happened' }] },
};
