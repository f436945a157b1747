/**
 * The front door of an installation: passes each request to the server that has the requested
 * objects.
 *
 *   request ─▶ destinations.ts ───▶ authenticator.ts ──────▶ backend ─▶ answer, as it arrives
 *              │ unknown 403        │ untrusted 401          │ not sent 503
 *              │ uncertain 503      └ nothing shown: the     │ broken off 502
 *              │ unavailable 503      backend wants a token  └ partial answer: reset
 *              └ redirect, 404, local
 *
 * DOOR-1 Each request resolves its path again, so a destination is never older than the path
 *    entries.
 * DOOR-2 A request is sent to one backend, once.
 * DOOR-3 The front door reads an answer only as fast as the client does. When a client gives up a
 *    request, the front door cancels it at the backend.
 */
import type { IncomingMessage } from 'node:http';
import { CacheError, Refused } from '../domain/errors.js';
import { GatheredBytes } from '../domain/base/gathered-bytes.js';
import { untilAborted } from '../domain/base/promises.js';
import type { Exchange } from '../http/exchange.js';
import { reservedExtra } from '../http/impersonation.js';
import { hasBody } from '../http/transport.js';
import {
  outcomeUnknown,
  expectationFailed,
  extraNotAllowed,
  headersTooLong,
  malformed,
  preflightAllowed,
  overdue,
  tooMany,
  notSent,
  unauthorized,
  type OwnAnswer,
} from './answers.js';
import type { Authenticator } from './authenticator.js';
import { assertDecoded, BrokenOff, NotSent, TooLong, type BackendCredentials } from './backend-requests.js';
import type { BackendAnswer, Backends } from './backends.js';
import type { DoorMetrics } from './door-metrics.js';
import type { Destination, Destinations } from './destinations.js';
import { answerHeaders, bodiless, linesOf, requestHeaders, type HeaderLines, type Identity } from './forwarded-headers.js';
import type { Mapping } from './mapping.js';
import { lasts, type LongRunningRequests } from './long-running-requests.js';

export type FrontDoorParts = Readonly<{
  destinations: Pick<Destinations, 'of'>;
  backends: Pick<Backends, 'request'>;
  authenticator: Pick<Authenticator, 'identityOf'>;
  credentials: (mapping: Mapping) => BackendCredentials;
  lasting: LongRunningRequests;
  metrics: DoorMetrics;
  /** Answers health and metrics. */
  local: (path: string, exchange: Exchange) => Promise<OwnAnswer>;
  /** Reports an unexpected error, which ends one request and not the process. */
  failed: (error: unknown, request: IncomingMessage) => void;
}>;

class Overdue extends CacheError {}
/**
 * Why a lasting request ends when the front door stops. Its client may retry at once, elsewhere.
 */
export const stopping = new NotSent('the front door stops');

/**
 * `corsOrigins`: origins of pages that may send requests across origins. `requestTimeoutMs`: the
 * limit of a request that is not long-running.
 */
export type FrontDoorOptions = Readonly<{ corsOrigins: readonly RegExp[]; requestTimeoutMs: number }>;

export class FrontDoor {
  readonly #parts: FrontDoorParts;
  readonly #options: FrontDoorOptions;

  constructor(parts: FrontDoorParts, options: FrontDoorOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  async handle(exchange: Exchange, refusal: Error | undefined): Promise<void> {
    let observe: ReturnType<DoorMetrics['begin']> | undefined = this.#parts.metrics.begin();
    try {
      if (refusal !== undefined) throw refusal;
      const answer = await this.#answer(exchange, () => (observe = undefined));
      if (answer !== undefined) sendOwnAnswer(exchange, answer);
    } catch (error) {
      // Reset a partial answer, because it would look complete.
      if (exchange.response.headersSent || exchange.isOver) exchange.cut();
      else sendOwnAnswer(exchange, this.#answerTo(error, exchange.request));
    }
    const { request, response } = exchange;
    observe?.(request.method, response.headersSent ? response.statusCode : undefined);
    exchange.answered();
  }

  #answerTo(error: unknown, request: IncomingMessage): OwnAnswer {
    const foreseen = answerTo(error);
    if (foreseen === undefined) this.#parts.failed(error, request);
    return foreseen ?? outcomeUnknown('the answer cannot be passed on');
  }

  /**
   * Undefined once a backend's answer was passed on. `skipObservation`: called for a request that
   * the metrics do not count, as in kcp's proxy. Throws Refused(429).
   */
  async #answer(exchange: Exchange, skipObservation: () => void): Promise<OwnAnswer | undefined> {
    const { request, response } = exchange;
    const { url = '/', method = 'GET', headers } = request;
    const found = await this.#parts.destinations.of({ url, method, headers });
    if (found.kind === 'local') {
      skipObservation();
      return this.#parts.local(found.path, exchange);
    }
    const cors = corsHeaders(headers.origin, this.#options.corsOrigins);
    for (const [name, value] of Object.entries(cors ?? {})) response.setHeader(name, value);
    // This precedes authentication: a browser sends a preflight without its certificate.
    if (cors !== undefined && method === 'OPTIONS') {
      skipObservation();
      return preflightAllowed;
    }
    if (found.kind === 'answer') return found.answer;
    return this.#forward(exchange, found);
  }

  async #forward(exchange: Exchange, to: Destination & { kind: 'backend' }): Promise<OwnAnswer | undefined> {
    const { request } = exchange;
    const { mapping, origin, target, shard } = to;
    const { metrics } = this.#parts;
    const isLasting = lasts(request.method, target);
    exchange.admit();
    if (isLasting) exchange.becomeWatch(0);
    const givenUp = new AbortController();
    const leave = exchange.onEnd(() => givenUp.abort(new BrokenOff('the client has gone')));
    const stop = isLasting ? this.#parts.lasting.add(() => givenUp.abort(stopping)) : undefined;
    // The timeout ends the request, which frees a slot of its caller.
    if (!isLasting)
      exchange.limit(this.#options.requestTimeoutMs, () => givenUp.abort(new Overdue('the request did not complete within its time')));
    try {
      const identity = await untilAborted(this.#parts.authenticator.identityOf(exchange.caller, request), givenUp.signal);
      if (identity === 'untrusted') return unauthorized;
      const reserved = reservedExtraOf(request);
      if (reserved !== undefined) return extraNotAllowed(reserved);
      const headers = forwardedHeaders(request, mapping, identity);
      const body = hasBody(request) && !isLasting ? request : undefined;
      const bodyPassed = (bytes: number): void => metrics.requestBody(shard, bytes);
      const asked = {
        origin,
        method: request.method ?? 'GET',
        target,
        headers,
        body,
        bodyPassed,
        lasts: isLasting,
        signal: givenUp.signal,
      };
      const answer = await this.#parts.backends.request({ ...asked, unread: exchange.unread }, this.#parts.credentials(mapping));
      const passed = (bytes: number): void => metrics.answerBody(shard, bytes);
      await passOn(exchange, answer, { isLasting, signal: givenUp.signal, passed });
      return undefined;
    } catch (error) {
      metrics.failed(shard, error);
      throw error;
    } finally {
      leave();
      stop?.();
    }
  }
}

const [statusMin, statusMax] = [200, 599];
/**
 * Beyond this, pending bytes are written before the turn of the event loop ends. A stream buffers
 * as many, so an unread answer occupies at most twice this.
 */
const gatheredBytesMax = 16 * 1024;

/**
 * Even a master's request must have no such key: through the front door, no caller is a master to a
 * shard.
 */
export function reservedExtraOf({ rawHeaders }: IncomingMessage): string | undefined {
  return reservedExtra(linesOf(rawHeaders).map(([name]) => name));
}

export function forwardedHeaders(request: IncomingMessage, { identityHeaders }: Mapping, identity: Identity | undefined): HeaderLines {
  const { rawHeaders, socket, headers } = request;
  const authority = headers[':authority'];
  const asked = typeof authority === 'string' ? authority : (headers.host ?? '');
  return requestHeaders({ rawHeaders, authority: asked, clientAddress: socket.remoteAddress ?? '', identity }, identityHeaders);
}

/** Undefined for an unexpected error. */
export function answerTo(error: unknown): OwnAnswer | undefined {
  if (error instanceof TooLong) return headersTooLong;
  if (error instanceof NotSent) return notSent(error.message);
  if (error instanceof BrokenOff) return outcomeUnknown(error.message);
  if (error instanceof Overdue) return overdue(error.message);
  if (!(error instanceof Refused)) return undefined;
  if (error.refusal.reason === 'TooManyRequests') return tooMany(error.message);
  if (error.refusal.reason === 'BadRequest') return malformed;
  if (error.refusal.reason === 'ExpectationFailed') return expectationFailed;
  return undefined;
}

export function isAnswer(status: number): boolean {
  return status >= statusMin && status <= statusMax;
}

/** `passed`: called with the length of each part of the answer's body. */
type PassingOn = Readonly<{ isLasting: boolean; signal: AbortSignal; passed: (bytes: number) => void }>;

/** Throws if the answer cannot be passed on at all. */
async function passOn(exchange: Exchange, answer: BackendAnswer, { isLasting, ...how }: PassingOn): Promise<void> {
  const { request, response } = exchange;
  const { status, headers, body } = answer;
  try {
    if (!isAnswer(status)) throw new BrokenOff(`the server has answered with the status ${status}`);
    assertDecoded(headers);
    response.writeHead(status, answerHeaders(status, headers) as Record<string, string | string[]>);
  } catch (error) {
    body.destroy();
    throw error;
  }
  // The first event of a watch may be late, so send the headers at once.
  if (isLasting) response.flushHeaders();
  if (request.method !== 'HEAD' && !bodiless.has(status) && headers['content-length'] !== '0') return passBodyOn(exchange, answer, how);
  // Discard any body that arrives, even if the backend never ends it.
  exchange.onEnd(() => void body.destroy());
  body.resume();
  exchange.finish();
  answer.endRequest();
}

/**
 * Passes the body on at the pace of the client. Parts that arrive in one turn of the event loop are
 * written together, because kcp writes a list in parts of 4 KiB. Resolves when the whole body was
 * written, or when either end has closed.
 *
 * A finished stream is left to close by itself. Ending it would send a reset for each request, and
 * servers end a connection with many resets.
 */
function passBodyOn(
  exchange: Exchange,
  { headers, body, isCutOff, endRequest }: BackendAnswer,
  { signal, passed }: Omit<PassingOn, 'isLasting'>,
): Promise<void> {
  let missing = Number(headers['content-length'] ?? NaN);
  let pending: Promise<void> | undefined;
  const gathered = new GatheredBytes();
  const writeSlowly = async (pieces: readonly Uint8Array[], bytes: number): Promise<void> => {
    body.pause();
    if (!(await exchange.memory.reserve(bytes))) return;
    await exchange.write(pieces);
    if (missing === 0) exchange.finish();
    body.resume();
  };
  // The answer ended before its body could be read.
  if (body.readableEnded || body.destroyed) throw new BrokenOff('the answer was broken off');
  return new Promise((resolve) => {
    const leave = exchange.onEnd(() => {
      if (!body.readableEnded) body.destroy();
      resolve();
    });
    // When the front door stops, the answer ends cleanly where it is, so that an informer
    // reconnects and continues from there.
    const broken = (): void => (signal.reason === stopping ? exchange.finish() : exchange.cut());
    const ended = (): void => {
      // A stream that its server resets without an error code looks whole, so compare the length
      // too.
      if (missing !== 0 && (isCutOff() || missing > 0)) broken();
      else exchange.finish();
      leave();
      endRequest();
      resolve();
    };
    const flush = (): void => {
      const { bytes } = gathered;
      if (bytes === 0) return;
      const pieces = gathered.take();
      if (exchange.isFull || !exchange.memory.tryReserve(bytes)) pending = writeSlowly(pieces, bytes);
      else if (missing !== 0) exchange.writeNow(pieces);
      else {
        exchange.writeNow(pieces.slice(0, -1));
        exchange.finish(pieces.at(-1));
      }
    };
    body.on('data', (chunk: Buffer) => {
      missing -= chunk.length;
      passed(chunk.length);
      const isFirst = gathered.bytes === 0;
      gathered.add(chunk);
      if (missing === 0 || gathered.bytes >= gatheredBytesMax) flush();
      else if (isFirst) setImmediate(flush);
    });
    // `end` may arrive while the last part still waits to be written.
    body.once('end', () => {
      flush();
      void (pending ?? Promise.resolve()).then(ended);
    });
    body.once('close', () => {
      if (body.readableEnded || missing === 0) return;
      flush();
      broken();
    });
  });
}

function sendOwnAnswer(exchange: Exchange, { code, headers, body }: OwnAnswer): void {
  if (exchange.isOver) return;
  const { request, response } = exchange;
  const bytes = Buffer.from(body);
  response.writeHead(code, { ...headers, ...(code !== 204 && { 'content-length': bytes.length }) });
  response.end(request.method === 'HEAD' ? undefined : bytes);
}

/**
 * Which web pages may send requests across origins, by the rules of kcp's proxy. Pure.
 *
 * `origin`: the Origin header. Undefined: no CORS headers, so the browser hides the answer from the
 * page.
 */
function corsHeaders(origin: string | undefined, allowed: readonly RegExp[]): Readonly<Record<string, string>> | undefined {
  if (origin === undefined || origin === '' || !allowed.some((pattern) => pattern.test(origin))) return undefined;
  return { 'access-control-allow-origin': origin, ...sameForAll };
}

const sameForAll = {
  'access-control-allow-methods': 'POST, GET, OPTIONS, PUT, DELETE, PATCH',
  'access-control-allow-headers':
    'Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since',
  'access-control-expose-headers': 'Date',
  'access-control-allow-credentials': 'true',
} as const;
