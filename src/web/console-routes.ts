/**
 * The console, /console: a page for people, and the read requests of that page. Callers who may
 * read the cache may see it, with a client certificate or with a session.
 * `strata console` makes a link that opens a session. The session is valid for these routes only.
 *
 *   POST /console/links ─▶ {"path": "/console/enter?link=…"}
 *   GET that path, once ─▶ cookie, and a page that loads /console
 *   /console ─▶ overview, objects/shards/S/clusters/C/…
 *
 * The cookie's name contains the cache's id, because all ports of a host share their cookies.
 */
import Router from '@koa/router';
import { createHash } from 'node:crypto';
import type { Context } from 'koa';
import { linkMs, sessionMs, type ConsoleSessions } from '../console/sessions.js';
import type { Overview } from '../console/page/overview.js';
import type { PageFiles } from '../console/page-files.js';
import { shown, type BoundedLog } from '../diagnostics/bounded-log.js';
import { mayRead, type Caller } from '../domain/caller.js';
import { badRequest, Refused, type Refusal } from '../domain/errors.js';
import type { Exchange } from '../http/exchange.js';
import { jsonAnswer } from './formats/answer.js';
import type { FaceAnswer } from './kube/kube-face.js';
import { readBody } from './formats/body.js';
import { encode } from './formats/parts.js';
import { respond } from './respond.js';

export type ConsoleParts = Readonly<{
  sessions: ConsoleSessions;
  overview: () => Promise<Overview>;
  files: () => Promise<PageFiles>;
  cacheId: string;
  log: BoundedLog;
}>;

/** Answers a read of objects for that caller; `target` is a path of the kube face. */
export type ReadObjects = (context: Context, target: string, caller: Caller) => Promise<FaceAnswer>;

/** Memory to reserve before an overview is made. */
const overviewBytesMax = 1024 * 1024;
const optionsBytesMax = 1024;
const objectsPrefix = '/console/objects';
const msPerSecond = 1_000;
const common = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-cache, private',
};

export function consoleRoutes(parts: ConsoleParts, exchangeOf: (context: Context) => Exchange, readObjects: ReadObjects): Router {
  const { sessions, overview, files, cacheId, log } = parts;
  const cookie = `__Host-strata-${cacheId}`;
  const begin = (context: Context): Exchange => {
    const exchange = exchangeOf(context);
    exchange.admit();
    for (const [name, value] of Object.entries(common)) exchange.response.setHeader(name, value);
    return exchange;
  };
  const router = new Router({ strict: true, sensitive: true });
  const read = (path: string | RegExp, handle: (exchange: Exchange, caller: Caller, context: Context) => Promise<void>): void => {
    router.get(path, async (context: Context) => {
      const exchange = begin(context);
      const caller = mayRead(exchange.caller) ? exchange.caller : sessions.callerOf(context.cookies.get(cookie) ?? '');
      await (caller === undefined ? refuse(exchange, context.path) : handle(exchange, caller, context));
    });
  };
  const refuse = (exchange: Exchange, path: string): Promise<void> => {
    // If a page of another site links here, the browser omits the cookie, which is SameSite=Strict.
    // This answer makes the browser request /console again, with the cookie.
    if (path === '/console' && exchange.request.headers['sec-fetch-site'] === 'cross-site')
      return respondPage(exchange, 401, onwardPolicy, redirectPage(`<script>${continueScript}</script>`));
    log.warn('console.refused', { user: exchange.caller.user, path: shown(path) });
    return respond(exchange, { kind: 'text', code: 401, text: noSession });
  };

  router.post('/console/links', async (context: Context) => {
    const exchange = begin(context);
    const { caller, request } = exchange;
    // A browser sends its user's certificate with the requests of any site's page, and names that
    // site in Origin. So a request with Origin gets no link.
    if (!mayRead(caller) || request.headers.origin !== undefined) throw new Refused(noLink(caller));
    if (context.querystring !== '' || (await readBody(exchange, optionsBytesMax)).length > 0)
      throw new Refused(
        badRequest('a request for a link must have neither a query nor a body: options such as dryRun would have no effect'),
      );
    log.info('console.link-made', { user: caller.user });
    const path = `/console/enter?link=${sessions.makeLink(caller)}`;
    await respond(exchange, jsonAnswer(201, JSON.stringify({ path, expiresInMs: linkMs })));
  });
  router.get('/console/enter', async (context: Context) => {
    const exchange = begin(context);
    // A HEAD must not use up the link.
    if (exchange.request.method === 'HEAD') return respond(exchange, { kind: 'text', code: 200, text: '' });
    const session = sessions.enter(new URLSearchParams(context.querystring).get('link') ?? '');
    if (session === undefined) {
      log.warn('console.refused', { user: exchange.caller.user, path: '/console/enter' });
      return respond(exchange, { kind: 'text', code: 401, text: usedUp });
    }
    log.info('console.entered', { user: sessions.callerOf(session)?.user });
    const attributes = `Path=/; Max-Age=${sessionMs / msPerSecond}; HttpOnly; Secure; SameSite=Strict`;
    exchange.response.setHeader('set-cookie', `${cookie}=${session}; ${attributes}`);
    await respondPage(exchange, 200, onwardPolicy, redirectPage('<meta http-equiv="refresh" content="0; url=/console">'));
  });
  read('/console', async (exchange) => {
    const { page, policy } = await files();
    await respondPage(exchange, 200, policy, page);
  });
  read(/^\/console\/assets\/(.+)$/, async (exchange, _, { path }) => {
    const file = (await files()).assets.get(path.slice('/console/assets/'.length));
    await respond(
      exchange,
      file === undefined ? { kind: 'text', code: 404, text: 'there is no such file\n' } : { kind: 'tagged', answer: file },
    );
  });
  read('/console/overview', async (exchange) => {
    if (await exchange.memory.reserve(overviewBytesMax)) await respond(exchange, jsonAnswer(200, JSON.stringify(await overview())));
  });
  read(/^\/console\/objects\//, async (exchange, caller, context) => {
    const target = (exchange.request.url ?? '').slice(objectsPrefix.length);
    await respond(exchange, await readObjects(context, target, caller));
  });
  return router;
}

function noLink({ user }: Caller): Refusal {
  const message = `forbidden: User ${JSON.stringify(user)} cannot get a link to the console: the user may not read this cache, or the request has an Origin header`;
  return { reason: 'Forbidden', message, details: {} };
}

const noSession =
  'To see the console of this cache, run: strata console --cache=… --cert-file=… --key-file=…\nand open the link that it prints.\n';
const usedUp = 'This link was opened before, or is older than a minute. Run strata console for a new one.\n';

/** Keeps the part of the URL behind the '#', which no header can carry. */
const continueScript = "location.replace('/console?led' + location.hash)";
const leadOnHash = createHash('sha256').update(continueScript).digest('base64');
const onwardPolicy = `default-src 'none'; script-src 'sha256-${leadOnHash}'; base-uri 'none'; frame-ancestors 'none'`;

/** A page that loads the console: a browser sends the cookie only with requests from this site. */
function redirectPage(onward: string): string {
  return `<!doctype html><meta charset="utf-8"><title>Strata</title>${onward}<a href="/console">Console</a>\n`;
}

async function respondPage(exchange: Exchange, code: number, policy: string, page: string): Promise<void> {
  exchange.response.setHeader('content-security-policy', policy);
  await respond(exchange, { kind: 'bytes', code, contentType: 'text/html; charset=utf-8', parts: [encode(page)] });
}
