/** Opens the listener of a server, also of one with a damaged store (damaged-server.ts). */
import { setImmediate } from 'node:timers';
import type { Settings } from '../config/settings.js';
import type { Health } from '../diagnostics/health.js';
import type { Log } from '../diagnostics/log.js';
import type { Metrics } from '../diagnostics/metrics.js';
import { Pace } from '../domain/base/pace.js';
import type { Clock } from '../domain/ports.js';
import { impersonationRefused } from '../http/impersonation.js';
import { limitReached } from '../http/limit-reached.js';
import { Listener, type ListenerParts } from '../http/listener.js';
import type { Quotas } from '../http/quotas.js';
import type { OpenCertificates } from './open-certificates.js';

/** The parts of a server before its store is open. */
export type ServingParts = Readonly<{
  log: Log;
  clock: Clock;
  metrics: Metrics;
  health: Health;
  certificates: OpenCertificates;
  quotas: Quotas;
}>;

/**
 * How many bytes of long answers are sent in one turn of the event loop. The kernel accepts a
 * megabyte over TLS in some five milliseconds.
 */
const turnBytesMax = 1024 * 1024;

/**
 * The caller calls `listen`. `passesOn`: another server checks bearer tokens and impersonation, so
 * this one does not.
 */
export function openListener(
  settings: Settings,
  { log, clock, metrics, certificates, quotas }: ServingParts,
  { handle, upgrade }: Pick<ListenerParts, 'handle' | 'upgrade'>,
  { passesOn = false } = {},
): Listener {
  return new Listener(
    certificates.serving.pair,
    {
      clock,
      quotas,
      pace: new Pace(turnBytesMax, setImmediate),
      callerOf: certificates.callerOf,
      refused: limitReached({ clock, log, metrics }),
      handle: passesOn ? handle : (exchange, refusal) => handle(exchange, refusal ?? impersonationRefused(exchange.request)),
      upgrade: passesOn ? upgrade : (asked) => upgrade({ ...asked, refusal: asked.refusal ?? impersonationRefused(asked.request) }),
    },
    { ...settings, servesTokens: passesOn, clientAuthorities: certificates.authorities },
  );
}
