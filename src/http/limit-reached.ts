/**
 * When a limit is reached, the client gets a refusal and may try again. A rate-limited line is
 * logged, and a metric counts it.
 */
import { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Log } from '../diagnostics/log.js';
import type { Metrics } from '../diagnostics/metrics.js';
import { callerKinds, type Caller } from '../domain/caller.js';
import { Refused, tooManyRequests } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import { limitNames, type LimitName, type Peer } from './quotas.js';

const whatOf: Readonly<Record<LimitName, string>> = {
  requests: 'requests',
  watches: 'watches',
  connections: 'connections',
  bufferedBytes: 'bytes of bodies and unread answers',
  waitingBytes: 'bytes of requests that wait for their turn',
  unreadBytes: 'bytes of answers from other servers that the client has not read',
  selectorBytes: 'bytes of selectors of open watches',
};

export type LimitReached = (limit: LimitName, peer: Peer, caller: Caller) => Refused;

export function limitReached(parts: Readonly<{ clock: Clock; log: Log; metrics: Metrics }>): LimitReached {
  const log = new BoundedLog(parts);
  // Start each series at 0, because a rate ignores the first value of a new series.
  for (const limit of limitNames) for (const caller of callerKinds) parts.metrics.limitsReached.add(0, { limit, caller });
  return (limit, { kind }, { user }) => {
    parts.metrics.limitsReached.add(1, { limit, caller: kind });
    log.warn('limit.reached', { limit, caller: kind, user });
    return tooMany(limit);
  };
}

/** 429: the caller, or all callers together, are at the limit. */
export function tooMany(limit: LimitName): Refused {
  return new Refused(tooManyRequests(`too many ${whatOf[limit]}`));
}
