/**
 * The front door of an installation: answers each request by asking the server that has what it is about.
 *
 *   request ─▶ where its path leads (destinations.ts) ─▶ who asks (certificate) ─▶ backend ─▶ answer, as it comes
 *                 │ unknown 403, uncertain 503              │ untrusted 401        │ not sent 503, broken off 502, half an answer: reset
 *                 └ unavailable 503, redirect, 404, local   └ none: the backend asks for a token
 *
 * DOOR-1 Where a path leads is asked for each request, so a stale answer is no older than the entries.
 * DOOR-2 A request is sent to one backend, once.
 * DOOR-3 What a client takes slowly is read slowly, and a request that it gives up is given up at the backend.
 */
import type { IncomingMessage } from 'node:http';
import { CacheError, Refused } from '../domain/errors.js';
import type { Exchange } from '../http/exchange.js';
import { brokenOff, mayAsk, overdue, tooMany, tryAgain, unauthorized, type OwnAnswer } from './answers.js';
import { BrokenOff, NotSent, type BackendAnswer, type BackendCredentials, type Backends } from './backends.js';
import { corsHeaders } from './cors.js';
import type { Destination, Destinations } from './destinations.js';
import { answerHeaders, requestHeaders, type HeaderLines, type Identity } from './forwarded-headers.js';
import { identityOf } from './identity.js';
import type { Mapping } from './mapping.js';
import type { GroupRules } from './passed-groups.js';

export type FrontDoorParts = Readonly<{
  destinations: Pick<Destinations, 'of'>;
  backends: Pick<Backends, 'request'>;
  credentials: (mapping: Mapping) => BackendCredentials;
  /** Health and metrics. */
  local: (path: string, exchange: Exchange) => Promise<OwnAnswer>;
  /** What nobody has foreseen, as an answer that cannot be passed on. It ends one request, and not the process. */
  failed: (error: unknown, request: IncomingMessage) => void;
}>;

/** The backend has not answered in time. */
class Overdue extends CacheError {}

/** `corsOrigins`: whose pages may ask across origins. `requestTimeoutMs`: of a request that is no watch. */
export type FrontDoorOptions = Readonly<{ groups: GroupRules; corsOrigins: readonly RegExp[]; requestTimeoutMs: number }>;

export class FrontDoor {
  readonly #parts: FrontDoorParts;
  readonly #options: FrontDoorOptions;

  constructor(parts: FrontDoorParts, options: FrontDoorOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  /** `refusal`: why the request must be refused. */
  async handle(exchange: Exchange, refusal: Error | undefined): Promise<void> {
    try {
      if (refusal !== undefined) throw refusal;
      const answer = await this.#answer(exchange);
      if (answer !== undefined) own(exchange, answer);
    } catch (error) {
      // Half an answer is reset, so that nobody takes it for whole.
      if (exchange.response.headersSent || exchange.isOver) exchange.cut();
      else own(exchange, this.#answerTo(error, exchange.request));
    }
    exchange.answered();
  }

  #answerTo(error: unknown, request: IncomingMessage): OwnAnswer {
    const foreseen = answerTo(error);
    if (foreseen === undefined) this.#parts.failed(error, request);
    return foreseen ?? brokenOff('the answer cannot be passed on');
  }

  /** Undefined once a backend's answer was passed on. */
  async #answer(exchange: Exchange): Promise<OwnAnswer | undefined> {
    const { request, response } = exchange;
    const { url = '/', method = 'GET', headers } = request;
    const { groups, corsOrigins } = this.#options;
    const found = await this.#parts.destinations.of({ url, method, headers });
    if (found.kind === 'local') return this.#parts.local(found.path, exchange);
    const cors = corsHeaders(headers.origin, corsOrigins);
    for (const [name, value] of Object.entries(cors ?? {})) response.setHeader(name, value);
    // Before authentication, because a browser shows no certificate with it.
    if (cors !== undefined && method === 'OPTIONS') return mayAsk;
    if (found.kind === 'answer') return found.answer;
    const identity = identityOf(exchange.caller, request, groups);
    if (identity === 'untrusted') return unauthorized;
    await this.#forward(exchange, found, identity);
    return undefined;
  }

  /** Throws Refused(429). */
  async #forward(exchange: Exchange, to: Destination & { kind: 'backend' }, identity: Identity | undefined): Promise<void> {
    const { request } = exchange;
    const { mapping, origin, target } = to;
    const isLasting = lasts(target);
    exchange.admit();
    if (isLasting) exchange.becomeWatch(0);
    const givenUp = new AbortController();
    const leave = exchange.onEnd(() => givenUp.abort(new BrokenOff('the client has gone')));
    // It gives back its place among the requests of its caller.
    if (!isLasting)
      exchange.limit(this.#options.requestTimeoutMs, () => givenUp.abort(new Overdue('the request did not complete within its time')));
    const headers = forwardedHeaders(request, mapping, identity);
    const body = hasBody(request) ? request : undefined;
    const asked = { origin, method: request.method ?? 'GET', target, headers, body, lasts: isLasting, signal: givenUp.signal };
    try {
      const answer = await this.#parts.backends.request(asked, this.#parts.credentials(mapping));
      await passOn(exchange, answer, isLasting).finally(() => answer.body.destroy());
    } finally {
      leave();
    }
  }
}

const [statusMin, statusMax] = [200, 599];

export function forwardedHeaders(request: IncomingMessage, { identityHeaders }: Mapping, identity: Identity | undefined): HeaderLines {
  const { rawHeaders, socket, headers } = request;
  const authority = headers[':authority'];
  const asked = typeof authority === 'string' ? authority : (headers.host ?? '');
  return requestHeaders({ rawHeaders, authority: asked, clientAddress: socket.remoteAddress ?? '', identity }, identityHeaders);
}

/** Undefined for what nobody has foreseen. */
export function answerTo(error: unknown): OwnAnswer | undefined {
  if (error instanceof NotSent) return tryAgain(error.message);
  if (error instanceof BrokenOff) return brokenOff(error.message);
  if (error instanceof Overdue) return overdue(error.message);
  if (error instanceof Refused && error.refusal.reason === 'TooManyRequests') return tooMany(error.message);
  return undefined;
}

async function passOn(exchange: Exchange, { status, headers, body, isCutOff }: BackendAnswer, isLasting: boolean): Promise<void> {
  const { request, response } = exchange;
  if (status < statusMin || status > statusMax) throw new BrokenOff(`the server has answered with the status ${status}`);
  response.writeHead(status, answerHeaders(headers) as Record<string, string | string[]>);
  if (request.method === 'HEAD' || status === 204 || status === 304) return exchange.finish();
  // The first event of a watch may be long in coming.
  if (isLasting) response.flushHeaders();
  let missing = Number(headers['content-length'] ?? 0);
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (exchange.isOver || !(await exchange.room.take(chunk.length))) return;
      missing -= chunk.length;
      await exchange.write([chunk]);
    }
  } catch {
    return exchange.cut();
  }
  // A stream that its server resets without a code ends as if it were whole.
  if (isCutOff() || missing > 0) exchange.cut();
  else exchange.finish();
}

function own(exchange: Exchange, { code, headers, body }: OwnAnswer): void {
  if (exchange.isOver) return;
  const { request, response } = exchange;
  const bytes = Buffer.from(body);
  response.writeHead(code, { ...headers, ...(code !== 204 && { 'content-length': bytes.length }) });
  response.end(request.method === 'HEAD' ? undefined : bytes);
}

function hasBody(request: IncomingMessage): boolean {
  const { httpVersionMajor, headers } = request;
  if (httpVersionMajor === 1) return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
  return !(request as unknown as { stream: { endAfterHeaders: boolean } }).stream.endAfterHeaders;
}

/** Whether an answer may go on for as long as anybody reads it. */
function lasts(target: string): boolean {
  const query = new URLSearchParams(target.slice(target.indexOf('?') + 1));
  return ['watch', 'follow'].some((name) => query.has(name) && !['false', '0'].includes(query.get(name) ?? ''));
}
