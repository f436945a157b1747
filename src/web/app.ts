/**
 * The HTTP application: health for everybody, metrics, status and the kube face for callers who may. What a handler throws is
 * answered here, once: a refusal as its Status, anything else as a 500 that is logged.
 */
import { setTimeout as delay } from 'node:timers/promises';
import Koa, { type Context, type Next } from 'koa';
import { Refused, type Refusal } from '../domain/errors.js';
import { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Exchange } from '../http/exchange.js';
import { answer, withoutQuery } from './kube-face.js';
import type { Verb } from './kube-request.js';
import { respond } from './respond.js';
import { routes, type RouteParts } from './routes.js';
import type { KubePorts } from './call.js';
import { failure } from './status.js';

export type AppParts = RouteParts & Readonly<{ ports: KubePorts; version: string }>;

export type AppLimits = Readonly<{ syntheticDelayMs: number; requestTimeoutMs: number; writeTimeoutMs: number }>;

/** Answers one request; `refusal`: why it must be refused. */
export type App = (exchange: Exchange, refusal: Error | undefined) => void;

/** Writes of one object: a collection may take as long as a list. */
const writes: readonly Verb[] = ['create', 'update', 'patch', 'delete'];

export function createApp(parts: AppParts, limits: AppLimits): App {
  const app = new Koa();
  app.silent = true;
  /** Koa makes a request's context, and begins to answer it, within the call that hands it over. */
  let arriving: Parameters<App> | undefined;
  const exchangeOf = ({ state }: Context): Exchange => state['exchange'] as Exchange;
  const audit = new BoundedLog({ clock: parts.ports.clock, log: parts.log });
  app.use((context, next) => {
    [context.state['exchange'], context.state['refusal']] = arriving ?? [];
    return observe(context, next, parts);
  });
  app.use((context, next) => answerRefusals(context, next, { ...parts, audit, exchange: exchangeOf(context) }));
  app.use((context, next) => begin(exchangeOf(context), context.state['refusal'] as Error | undefined, limits, next));
  if (limits.syntheticDelayMs > 0) app.use(async (_, next) => (await delay(limits.syntheticDelayMs), next()));
  app.use(routes({ ...parts, clock: parts.ports.clock }, exchangeOf).routes());
  app.use((context) => kubeFace(context, exchangeOf(context), parts, limits));
  const answerRequest = app.callback();
  return (exchange, refusal) => {
    arriving = [exchange, refusal];
    void answerRequest(exchange.request, exchange.response).then(() => exchange.answered());
    arriving = undefined;
  };
}

function begin(exchange: Exchange, refusal: Error | undefined, { requestTimeoutMs }: AppLimits, next: Next): Promise<void> {
  if (refusal !== undefined) throw refusal;
  exchange.limit(requestTimeoutMs, () => cutShort(exchange));
  return next();
}

async function kubeFace(
  context: Context,
  exchange: Exchange,
  { ports, version }: AppParts,
  { requestTimeoutMs, writeTimeoutMs }: AppLimits,
): Promise<void> {
  exchange.admit();
  const noteVerb = (verb: Verb): void => {
    context.state['verb'] = verb;
    if (writes.includes(verb)) exchange.limit(Math.min(requestTimeoutMs, writeTimeoutMs), () => cutShort(exchange));
  };
  const answered = await answer({ target: exchange.request.url ?? '/', exchange }, ports, version, noteVerb);
  await respond(context, exchange, answered);
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

async function observe(context: Context, next: Next, { metrics, ports }: AppParts): Promise<void> {
  const startedMs = ports.clock.now();
  await next();
  const verb = (context.state['verb'] as Verb | undefined) ?? 'other';
  metrics.requests.add(1, { verb, code: String(context.res.statusCode) });
  if (verb !== 'watch') metrics.requestSeconds.observe((ports.clock.now() - startedMs) / 1000, { verb });
}

type RefusalParts = AppParts & Readonly<{ audit: BoundedLog; exchange: Exchange }>;

async function answerRefusals(context: Context, next: Next, parts: RefusalParts): Promise<void> {
  const { log, metrics, exchange } = parts;
  try {
    await next();
  } catch (error) {
    const refusal = error instanceof Refused ? error.refusal : internalError;
    if (!(error instanceof Refused)) log.error('request.failed', { method: context.method, path: context.path, error });
    if (refusal.reason === 'Forbidden') logForbidden(context, parts);
    metrics.refusals.add(1, { reason: refusal.reason });
    if (context.res.headersSent) {
      context.respond = false;
      return exchange.cut();
    }
    const { code, text, retryAfterSeconds } = failure(refusal);
    context.status = code;
    context.set('content-type', 'application/json');
    context.set('cache-control', 'no-cache, private');
    if (retryAfterSeconds !== undefined && retryAfterSeconds > 0) context.set('retry-after', String(retryAfterSeconds));
    context.body = Buffer.from(text);
  }
}

/** The audit line: who was refused what. Never the query or the body, which may hold anything. */
function logForbidden(context: Context, { audit, exchange }: RefusalParts): void {
  const { user, groups, speaksFor } = exchange.caller;
  const verb = (context.state['verb'] as Verb | undefined) ?? context.method.toLowerCase();
  const path = withoutQuery(context.req.url ?? '/');
  audit.warn('request.forbidden', { user, groups, ...(speaksFor === undefined ? {} : { speaksFor }), verb, path });
}

const internalError: Refusal = {
  reason: 'InternalError',
  message: 'Internal error occurred',
  details: { causes: [{ message: 'the server has logged what happened' }] },
};
