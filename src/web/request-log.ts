/**
 * The log lines of requests: the access log, if the operator wants it, and the audit lines of
 * refusals. They never contain the query or the body, which may hold secrets.
 */
import { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Log } from '../diagnostics/log.js';
import { shown } from '../diagnostics/shown.js';
import { mayRead, type Caller } from '../domain/caller.js';
import { loggedRefusal, type Refusal } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import type { Exchange } from '../http/exchange.js';
import type { Verb } from './kube-request.js';
import { withoutQuery } from './target.js';

/** `verb`: undefined if unknown. `caller`: set if it is not the connection's. */
export type LoggedRequest = Readonly<{ exchange: Exchange; verb: Verb | undefined; caller?: Caller }>;

export class RequestLog {
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
   * The access log; a watch is logged at its end. The lines of callers who may not read are
   * rate-limited, like those of refusals.
   */
  answered({ exchange, verb, caller = exchange.caller }: LoggedRequest, tookMs: number): void {
    const { request, response } = exchange;
    const { method = 'GET', url = '/', httpVersion } = request;
    const path = shown(withoutQuery(url));
    const fields = { user: caller.user, verb: verb ?? method.toLowerCase(), path, code: response.statusCode, tookMs, httpVersion };
    (mayRead(caller) ? this.#log : this.#strangers).info('request.answered', fields);
  }

  /** The audit line: who was refused what, and for a write the reason. */
  refused({ exchange, verb }: LoggedRequest, refusal: Refusal): void {
    const { user, groups, speaksFor } = exchange.caller;
    const { method = 'GET', url = '/' } = exchange.request;
    const who = { user, groups, ...(speaksFor === undefined ? {} : { speaksFor }) };
    const what = { verb: verb ?? method.toLowerCase(), path: shown(withoutQuery(url)) };
    if (refusal.reason === 'Forbidden') this.#forbidden.warn('request.forbidden', { ...who, ...what });
    else this.#refused.info('request.refused', { ...who, ...what, ...loggedRefusal(refusal) });
  }
}
