/**
 * Upgrade requests. The backend decides whether a websocket begins. Every other protocol is
 * refused, as in kcp's proxy. After the upgrade each end gets the bytes at its own pace, and when
 * one end closes, the other is closed.
 */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { atExpiry } from '../domain/caller.js';
import type { Clock } from '../domain/ports.js';
import { untilAborted } from '../domain/base/promises.js';
import { hasBody } from '../http/transport.js';
import type { Upgrade } from '../http/connection.js';
import { badGateway, extraNotAllowed, malformed, pageNotFound, unauthorized } from './answers.js';
import { BrokenOff } from './backend-requests.js';
import type { Backends } from './backends.js';
import { answerHeaders, bodiless, type HeaderLines } from './forwarded-headers.js';
import { answerTo, forwardedHeaders, type FrontDoorParts, isAnswer, reservedExtraOf, stopping } from './front-door.js';
import { lasts } from './long-running-requests.js';
import { passAlong } from './paced-copy.js';
import type { UpgradeAnswer } from './upgrade-request.js';

export type WebsocketsParts = Pick<FrontDoorParts, 'destinations' | 'authenticator' | 'credentials' | 'lasting' | 'failed' | 'metrics'> &
  Readonly<{ backends: Pick<Backends, 'upgrade'>; clock: Clock }>;

const switching = 101;
/** How long a client may take to read the refusal. */
const refusalMsMax = 5_000;

type PassedAnswer = Readonly<{ code: number; headers: HeaderLines; body: string | Buffer }>;

export class Websockets {
  readonly #parts: WebsocketsParts;

  constructor(parts: WebsocketsParts) {
    this.#parts = parts;
  }

  async handle(upgrade: Upgrade): Promise<void> {
    const { request, socket, caller, refusal } = upgrade;
    const givenUp = new AbortController();
    socket.on('error', () => {});
    // No other part closes an upgraded connection when the caller's certificate expires.
    const leave = atExpiry(caller, this.#parts.clock, () => void socket.destroy());
    const stop = lasts(request.method, request.url ?? '/') ? this.#parts.lasting.add(() => givenUp.abort(stopping)) : undefined;
    const observe = this.#parts.metrics.begin();
    let code: number | undefined;
    socket.once('close', () => {
      observe(request.method, code);
      leave();
      stop?.();
      givenUp.abort(new BrokenOff('the client has gone'));
    });
    try {
      if (refusal !== undefined) throw refusal;
      const answer = await this.#upgraded(upgrade, givenUp.signal);
      code = answer?.code ?? switching;
      if (answer !== undefined) this.#end(socket, answer);
    } catch (error) {
      const foreseen = answerTo(error);
      if (foreseen === undefined) this.#parts.failed(error, request);
      const answer = foreseen ?? badGateway;
      code = answer.code;
      this.#end(socket, answer);
    }
  }

  /**
   * Closes the socket within `refusalMsMax`, even if the client does not read the answer or close
   * its side.
   */
  #end(socket: Duplex, { code, headers, body }: PassedAnswer): void {
    if (socket.destroyed) return;
    const hasNone = bodiless.has(code);
    const length = hasNone ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    socket.write(headOf(code, { ...headers, ...length, connection: 'close' }));
    socket.end(hasNone ? undefined : body);
    const cancel = this.#parts.clock.after(refusalMsMax, () => void socket.destroy());
    socket.once('finish', () => void socket.destroy());
    socket.once('close', cancel);
  }

  /** Undefined once a backend's answer was passed on. */
  async #upgraded({ request, socket, head, caller, becomeWatch }: Upgrade, signal: AbortSignal): Promise<PassedAnswer | undefined> {
    const { url = '/', method = 'GET', headers } = request;
    if (method !== 'GET' || headers.upgrade?.toLowerCase() !== 'websocket') return badGateway;
    // The backend would read the bytes of the body as websocket frames.
    if (hasBody(request)) return malformed;
    const found = await this.#parts.destinations.of({ url, method, headers });
    if (found.kind === 'answer') return found.answer;
    if (found.kind === 'local') return pageNotFound;
    const { mapping, origin, target, shard } = found;
    becomeWatch();
    const identity = await untilAborted(this.#parts.authenticator.identityOf(caller, request), signal);
    if (identity === 'untrusted') return unauthorized;
    const reserved = reservedExtraOf(request);
    if (reserved !== undefined) return extraNotAllowed(reserved);
    const asked = { origin, target, headers: forwardedHeaders(request, mapping, identity), signal };
    const asking = this.#parts.backends.upgrade(asked, this.#parts.credentials(mapping));
    const answer = await asking.catch((error: unknown) => {
      this.#parts.metrics.failed(shard, error);
      throw error;
    });
    if (answer.socket === undefined) return refusalOf(answer);
    join({ client: socket, head }, answer, { signal, clock: this.#parts.clock });
    return undefined;
  }
}

/** The backend's own answer. Throws BrokenOff if its status is not valid. */
function refusalOf({ status, headers, body }: UpgradeAnswer & { socket: undefined }): PassedAnswer {
  if (!isAnswer(status)) throw new BrokenOff(`the server has answered with the status ${status}`);
  return { code: status, headers: answerHeaders(status, headers), body };
}

/** `head`: bytes that the client has already sent. */
function join(
  { client, head }: Readonly<{ client: Duplex; head: Buffer }>,
  answer: UpgradeAnswer & { body: undefined },
  { signal, clock }: Readonly<{ signal: AbortSignal; clock: Clock }>,
): void {
  const { headers, socket, head: begun } = answer;
  client.write(headOf(switching, { ...answerHeaders(switching, headers), connection: 'Upgrade', upgrade: 'websocket' }));
  if (begun.length > 0) client.write(begun);
  if (head.length > 0) socket.write(head);
  socket.on('error', () => {});
  signal.addEventListener('abort', () => void socket.destroy(), { once: true });
  socket.once('close', () => client.destroy());
  passAlong(client, socket, clock);
  passAlong(socket, client, clock);
}

/** In latin1, because each character is one byte that the backend sent (HEADERS-3). */
function headOf(code: number, headers: HeaderLines): Buffer {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    (typeof value === 'string' ? [value] : value).map((each) => `${name}: ${each}\r\n`),
  );
  return Buffer.from(`HTTP/1.1 ${code} ${STATUS_CODES[code] ?? ''}\r\n${lines.join('')}\r\n`, 'latin1');
}
