/**
 * The HTTP application: health for everybody, metrics, status and the kube face for those who may. Whatever a handler throws is
 * answered here, once: a refusal as its Status, anything else as a 500 that is logged.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import Router, { type RouterContext } from '@koa/router';
import Koa, { type Context, type Next } from 'koa';
import { callerAt, type Caller } from '../domain/caller.js';
import { badRequest, Refused, type Refusal } from '../domain/errors.js';
import type { Freshness, Shards } from '../domain/ports.js';
import { parseShardName } from '../domain/shard.js';
import { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Log } from '../diagnostics/log.js';
import type { Health, HealthEndpoint } from '../diagnostics/health.js';
import type { Metrics } from '../diagnostics/metrics.js';
import { jsonAnswer } from './answer.js';
import { authorize } from './authorize.js';
import type { KubePorts } from './call.js';
import { indented } from './indented.js';
import { answer, withoutQuery, type FaceAnswer } from './kube-face.js';
import type { Verb } from './kube-request.js';
import { failure } from './status.js';
import { abandonBody, drainBody } from './unread-body.js';

export type AppParts = Readonly<{
  ports: KubePorts;
  freshness: Freshness;
  shards: Shards;
  log: Log;
  metrics: Metrics;
  health: Health;
  callerOf: (socket: TLSSocket) => Caller;
  version: string;
}>;

export type AppLimits = Readonly<{
  syntheticDelayMs: number;
  requestTimeoutMs: number;
  writeTimeoutMs: number;
  requestsInFlightMax: number;
}>;

const healthEndpoints: readonly HealthEndpoint[] = ['healthz', 'livez', 'readyz'];
/** Writes of one object: a collection may take as long as a list. */
const writes: readonly Verb[] = ['create', 'update', 'patch', 'delete'];

export function createApp(parts: AppParts, limits: AppLimits): Koa {
  const app = new Koa();
  app.silent = true;
  app.use((context, next) => observe(context, next, parts));
  const audit = new BoundedLog({ clock: parts.ports.clock, log: parts.log });
  app.use((context, next) => answerRefusals(context, next, parts, audit));
  if (limits.syntheticDelayMs > 0) app.use(async (_, next) => (await delay(limits.syntheticDelayMs), next()));
  app.use(routes(parts).routes());
  const admission = new InFlight(limits.requestsInFlightMax);
  app.use((context) => kubeFace(context, parts, limits, admission));
  return app;
}

function routes(parts: AppParts): Router {
  const { health, log, metrics, freshness, shards } = parts;
  const router = new Router();
  for (const endpoint of healthEndpoints) {
    router.get(`/${endpoint}`, (context: Context) => {
      const query = new URLSearchParams(context.querystring);
      const report = health.report(endpoint, { verbose: query.has('verbose'), excluded: query.getAll('exclude') });
      for (const { name, reason } of report.failures) log.warn('health.failed', { endpoint, name, reason });
      text(context, report.status, report.text);
    });
  }
  router.get('/metrics', async (context: Context) => {
    authorizePath(context, parts);
    context.set('content-type', metrics.contentType);
    context.body = Buffer.from(await metrics.render());
  });
  router.get('/services/cache/status', async (context: Context) => {
    authorizePath(context, parts);
    respond(context, jsonAnswer(200, JSON.stringify(await freshness.report())));
  });
  router.delete('/services/cache/shards/:name', async (context: Context & RouterContext) => {
    authorizePath(context, parts);
    const { name = '' } = context.params;
    const shard = parseShardName(name);
    if (shard === undefined) throw new Refused(badRequest(`invalid shard: ${JSON.stringify(name)} does not match the regex`));
    const done = await shards.remove(shard);
    if (done === undefined)
      throw new Refused({ reason: 'NotFound', message: `shard ${JSON.stringify(shard)} not found`, details: { name } });
    respond(context, jsonAnswer(200, JSON.stringify({ shard, objectsRemoved: done.removed })));
  });
  return router;
}

/** For what is no resource of a shard: reading it is for those who read, the rest for masters. Throws Refused(403). */
function authorizePath(context: Context, parts: AppParts): void {
  const asked = { path: pathOf(context), method: context.method, shard: undefined, resource: undefined, verb: undefined };
  const forbidden = authorize(callerNow(context, parts), asked);
  if (forbidden !== undefined) throw new Refused(forbidden);
}

async function kubeFace(context: Context, parts: AppParts, limits: AppLimits, inFlight: InFlight): Promise<void> {
  const { ports, version } = parts;
  const target = context.req.url ?? '/';
  const { req: request, res: response } = context;
  const release = inFlight.enter();
  const limit = (ms: number): (() => void) => ports.clock.after(ms, () => cutShort(context));
  let cancel = limit(limits.requestTimeoutMs);
  const noteVerb = (verb: Verb): void => {
    context.state['verb'] = verb;
    const isWatch = verb === 'watch';
    // Watches have a time of their own.
    if (isWatch || writes.includes(verb)) cancel();
    if (isWatch) release();
    else if (writes.includes(verb)) cancel = limit(Math.min(limits.requestTimeoutMs, limits.writeTimeoutMs));
  };
  try {
    const answered = await answer({ target, caller: callerNow(context, parts), request, response }, ports, version, noteVerb);
    respond(context, answered);
  } finally {
    cancel();
    release();
  }
}

/** A request whose time is up: 504 while nothing has been said yet, else the connection is gone. */
function cutShort(context: Context): void {
  const response = context.res;
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { code, text: status } = failure({ reason: 'Timeout', message: 'the request did not complete within its time' });
  abandonBody(context);
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(status);
}

function respond(context: Context, answered: FaceAnswer): void {
  switch (answered.kind) {
    case 'streamed':
      context.respond = false;
      return;
    case 'text':
      return text(context, answered.code, answered.text);
    case 'discovery': {
      const { contentType, body, etag } = answered.answer;
      context.set('content-type', contentType);
      if (etag !== undefined) context.set('etag', etag);
      context.body = Buffer.from(body);
      context.status = context.fresh ? 304 : 200;
      return;
    }
    case 'bytes': {
      context.status = answered.code;
      context.set('content-type', answered.contentType);
      context.set('cache-control', 'no-cache, private');
      for (const warning of answered.warnings ?? []) context.append('warning', `299 - ${JSON.stringify(warning)}`);
      const bytes = Buffer.from(answered.bytes.buffer, answered.bytes.byteOffset, answered.bytes.length);
      context.body = isIndented(context) && answered.contentType === 'application/json' ? indented(bytes) : bytes;
    }
  }
}

async function observe(context: Context, next: Next, { metrics, ports }: AppParts): Promise<void> {
  const startedMs = ports.clock.now();
  await next();
  const verb = (context.state['verb'] as Verb | undefined) ?? 'other';
  metrics.requests.add(1, { verb, code: String(context.res.statusCode) });
  if (verb !== 'watch') metrics.requestSeconds.observe((ports.clock.now() - startedMs) / 1000, { verb });
}

async function answerRefusals(context: Context, next: Next, parts: AppParts, audit: BoundedLog): Promise<void> {
  const { log, metrics } = parts;
  try {
    await next();
  } catch (error) {
    const refusal = error instanceof Refused ? error.refusal : internalError;
    if (!(error instanceof Refused)) log.error('request.failed', { method: context.method, path: context.path, error });
    if (refusal.reason === 'Forbidden') logForbidden(context, parts, audit);
    metrics.refusals.add(1, { reason: refusal.reason });
    if (context.res.headersSent) {
      context.respond = false;
      context.res.destroy();
      return;
    }
    const { code, text: status, retryAfterSeconds } = failure(refusal);
    context.status = code;
    context.set('content-type', 'application/json');
    context.set('cache-control', 'no-cache, private');
    if (retryAfterSeconds !== undefined && retryAfterSeconds > 0) context.set('retry-after', String(retryAfterSeconds));
    abandonBody(context);
    await drainBody(context, parts.ports.clock);
    context.body = Buffer.from(status);
  }
}

/** The audit line: who was refused what. Never the query or the body, which may hold anything. */
function logForbidden(context: Context, parts: AppParts, audit: BoundedLog): void {
  const { user, groups, speaksFor } = callerNow(context, parts);
  const verb = (context.state['verb'] as Verb | undefined) ?? context.method.toLowerCase();
  audit.warn('request.forbidden', { user, groups, ...(speaksFor === undefined ? {} : { speaksFor }), verb, path: pathOf(context) });
}

function text(context: Context, code: number, body: string): void {
  context.status = code;
  context.set('content-type', 'text/plain; charset=utf-8');
  context.set('x-content-type-options', 'nosniff');
  context.body = Buffer.from(body);
}

/** People at a terminal get indented JSON (N3). */
function isIndented({ query, req }: Context): boolean {
  const pretty = query['pretty'];
  if (pretty !== undefined) return pretty === '1' || pretty === 'true';
  return /^(curl|Wget)\//.test(req.headers['user-agent'] ?? '');
}

function callerNow(context: Context, { callerOf, ports }: AppParts): Caller {
  return callerAt(callerOf(context.req.socket as TLSSocket), ports.clock.now());
}

function pathOf(context: Context): string {
  return withoutQuery(context.req.url ?? '/');
}

const internalError: Refusal = {
  reason: 'InternalError',
  message: 'Internal error occurred',
  details: { causes: [{ message: 'the server has logged what happened' }] },
};

/** Requests under way, watches not counted. */
class InFlight {
  readonly #max: number;
  #count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Throws Refused(429) when there are too many. The result ends the request's part in it, once. */
  enter(): () => void {
    if (this.#count >= this.#max) {
      throw new Refused({
        reason: 'TooManyRequests',
        message: 'too many requests, please try again later',
        details: { retryAfterSeconds: 1 },
      });
    }
    this.#count += 1;
    let entered = true;
    return () => {
      if (entered) this.#count -= 1;
      entered = false;
    };
  }
}
