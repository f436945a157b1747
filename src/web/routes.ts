/**
 * Routes beside the kube face. Everybody may read health. Readers may request metrics, status,
 * freshness, look-ups and path resolution. Masters may remove shards and caches.
 */
import { setImmediate as turn } from 'node:timers/promises';
import Router, { type RouterContext } from '@koa/router';
import type { Context } from 'koa';
import { healthEndpoints, HealthLog, healthQueryOf, type Health } from '../diagnostics/health.js';
import type { Log } from '../diagnostics/log.js';
import type { Metrics } from '../diagnostics/metrics.js';
import { badRequest, Refused } from '../domain/errors.js';
import { mustParse } from '../domain/parsed.js';
import { mayReadMetrics, type Caller } from '../domain/caller.js';
import { parseCacheName } from '../domain/via.js';
import type { Caches, Clock, Freshness, HeavyWorks, Paths, Removals, Shards } from '../domain/ports.js';
import { parseShardName } from '../domain/shard.js';
import type { Revisions } from '../domain/store-port.js';
import type { StatusReport } from '../domain/status.js';
import type { Exchange } from '../http/exchange.js';
import { negotiate } from './formats/accept.js';
import { encoded, jsonAnswer } from './formats/answer.js';
import { authorize } from './authorize.js';
import { readBody } from './formats/body.js';
import type { Answer, Call, KubeLimits, KubePorts } from './kube/call.js';
import { parseFreshnessQuestion, parseLookUpQuestion, parseResolveQuestion } from './route-questions.js';
import type { FaceAnswer } from './kube/kube-face.js';
import { lookUp } from './look-up.js';
import { encode, type Part } from './formats/parts.js';
import { respond } from './respond.js';
import { parseTarget, withoutQuery } from './target.js';

export type RouteParts = Readonly<{
  freshness: Freshness;
  paths: Paths;
  shards: Shards;
  removals: Removals;
  caches: Caches;
  log: Log;
  metrics: Metrics;
  health: Health;
  publicPaths: readonly string[];
}>;

/** Answers a GET of one object, but calls `answerWith` instead of the verb. */
export type GetObject = (
  context: Context,
  target: string,
  answerWith: (call: Call, ports: KubePorts) => Promise<Answer>,
) => Promise<FaceAnswer>;

/**
 * Memory to reserve before a report is made. Metrics and status grow with the contents of the
 * store.
 */
const reportBytesMax = 8 * 1024 * 1024;
/**
 * A report is written in parts of at least this size, one per turn of the event loop. A part ends
 * between two shards.
 */
const turnBytesMin = 512 * 1024;
/** A report on one type on a hundred shards is shorter. */
const freshnessBytesMax = 64 * 1024;
/**
 * Enough for one line for each shard on the longest possible path, and for each shard that is not
 * current.
 */
const resolutionBytesMax = 64 * 1024;
/** Longer than any options, so that the server reads them and refuses them with a reason. */
const optionsBytesMax = 16 * 1024;

export function routes(
  parts: RouteParts & Readonly<{ clock: Clock; heavy: HeavyWorks; revisions: Revisions; limits: Pick<KubeLimits, 'bodyBytesMax'> }>,
  exchangeOf: (context: Context) => Exchange,
  getObject: GetObject,
): Router {
  const { health, metrics, freshness, paths, shards, removals, caches, heavy, publicPaths, revisions, limits } = parts;
  const healthLog = new HealthLog(parts);
  const router = new Router({ strict: true, sensitive: true });
  for (const endpoint of healthEndpoints) {
    router.get(`/${endpoint}`, (context: Context) => {
      const report = health.report(endpoint, healthQueryOf(queryOf(context)));
      healthLog.failed(endpoint, report);
      return respond(exchangeOf(context), { kind: 'text', code: report.status, text: report.text });
    });
  }
  const read = (
    path: string,
    bytesMax: number,
    make: (query: URLSearchParams, context: Context) => Promise<Answer>,
    isOpenTo = (_: Caller) => false,
  ): void => {
    router.get(path, async (context: Context) => {
      const exchange = exchangeOf(context);
      exchange.admit();
      if (!isOpenTo(exchange.caller)) authorizePath(exchange);
      const query = queryOf(context);
      if (await exchange.memory.reserve(bytesMax)) await respond(exchange, await make(query, context));
    });
  };
  const metricsAnswer = async (): Promise<Answer> => {
    const parts = [Buffer.from(await metrics.render())];
    return { kind: 'bytes', code: 200, contentType: metrics.contentType, parts };
  };
  read('/metrics', reportBytesMax, metricsAnswer, (caller) => publicPaths.includes('/metrics') || mayReadMetrics(caller));
  read('/services/cache/status', reportBytesMax, async () => reportAnswer(await freshness.report()));
  read('/services/cache/freshness', freshnessBytesMax, async (query) =>
    jsonAnswer(200, JSON.stringify(await freshness.ofType(mustParse(parseFreshnessQuestion(query))))),
  );
  read('/services/cache/look-up', freshnessBytesMax + limits.bodyBytesMax, (query, context) =>
    lookUp(mustParse(parseLookUpQuestion(query)), {
      freshness,
      revisions,
      get: (target, answerWith) => getObject(context, target, answerWith),
    }),
  );
  read('/services/cache/resolve', resolutionBytesMax, async (query) =>
    jsonAnswer(200, JSON.stringify(await paths.answer(mustParse(parseResolveQuestion(query))))),
  );
  /**
   * Routes the DELETE of a `what` whose name `parse` accepts. `done` returns undefined if nothing
   * has that name. Options are refused, because the route supports none.
   */
  const end = <Name extends string>(
    path: string,
    [what, parse]: readonly [what: string, parse: (text: string) => Name | undefined],
    done: (name: Name, type: string | undefined) => Promise<object | undefined>,
  ): void => {
    router.delete(path, async (context: Context & RouterContext) => {
      const exchange = exchangeOf(context);
      exchange.admit();
      authorizePath(exchange);
      const { encoding } = mustParse(negotiate(exchange.request.headers.accept, 'one'));
      const body = await readBody(exchange, optionsBytesMax);
      if (queryOf(context).size > 0 || body.length > 0)
        throw new Refused(badRequest('this removal must have neither a query nor a body: options such as dryRun would have no effect'));
      const { name = '', type } = context.params;
      const parsed = parse(name);
      if (parsed === undefined) throw new Refused(badRequest(`invalid ${what}: ${JSON.stringify(name)} does not match the regex`));
      const answer = await done(parsed, type);
      if (answer === undefined)
        throw new Refused({ reason: 'NotFound', message: `${what} ${JSON.stringify(name)} not found`, details: { name } });
      const writing = { encoding, heavy: heavy.of(exchange.caller.user) };
      await respond(exchange, await encoded(200, [encode(JSON.stringify(answer))], writing));
    });
  };
  end('/services/cache/shards/:name', ['shard', parseShardName], async (shard) => {
    const done = await shards.remove(shard);
    return done && { shard, objectsRemoved: done.removed };
  });
  for (const path of ['/services/cache/shards/:name/held', '/services/cache/shards/:name/held/:type'])
    end(path, ['held removal of the shard', parseShardName], async (shard, type) => {
      const confirmed = removals.confirm(shard, type);
      return confirmed.length === 0 ? undefined : { shard, confirmed };
    });
  end('/services/cache/caches/:name', ['cache', parseCacheName], async (cache) => {
    const done = await caches.leave(cache);
    return done && { cache, shards: done.shards };
  });
  return router;
}

function queryOf({ req }: Context): URLSearchParams {
  return mustParse(parseTarget(req.url ?? '/')).query;
}

/** Readers may GET the path, only masters may do more. Throws Refused(403). */
function authorizePath({ caller, request }: Exchange): void {
  const { url = '/', method = 'GET' } = request;
  const asked = { path: withoutQuery(url), method, shard: undefined, resource: undefined, verb: undefined };
  const forbidden = authorize(caller, asked);
  if (forbidden !== undefined) throw new Refused(forbidden);
}

/** Writes the shards last and one by one, because each may have many slices. */
async function reportAnswer({ shards, ...others }: StatusReport): Promise<Answer> {
  const parts: Part[] = [encode(`${JSON.stringify(others).slice(0, -1)},"shards":[`)];
  let bytes = 0;
  for (const [at, shard] of shards.entries()) {
    const part = encode(`${at === 0 ? '' : ','}${JSON.stringify(shard)}`);
    parts.push(part);
    bytes += part.length;
    if (bytes < turnBytesMin) continue;
    await turn();
    bytes = 0;
  }
  parts.push(encode(']}'));
  return { kind: 'bytes', code: 200, contentType: 'application/json', parts };
}
