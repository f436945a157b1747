/** Makes exchanges, and memory without bounds, for tests of handlers. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { systemClock } from '../../src/clock.js';
import { Budget } from '../../src/domain/base/budget.js';
import type { Caller } from '../../src/domain/caller.js';
import { Pace } from '../../src/domain/base/pace.js';
import type { MemoryReservation } from '../../src/domain/base/memory-reservation.js';
import { Exchange } from '../../src/http/exchange.js';
import { tooMany } from '../../src/http/limit-reached.js';
import type { App } from '../../src/web/app.js';

export const endlessMemory: MemoryReservation = {
  tryReserve: () => true,
  reserve: async () => true,
  add: () => {},
  release: () => {},
  reserveExactly: () => {},
};

const endless = new Budget(Infinity);

export function anExchange(request: IncomingMessage, response: ServerResponse, caller: Caller): Exchange {
  return new Exchange(request, response, {
    clock: systemClock,
    quota: {
      requests: endless,
      watches: endless,
      connections: endless,
      bufferedBytes: endless,
      waitingBytes: endless,
      unreadBytes: endless,
      selectorBytes: endless,
    },
    bufferedBytes: endless,
    sendTimeoutMs: 30_000,
    pace: new Pace(Infinity, setImmediate),
    turn: async () => {},
    callerNow: caller,
    validUntilMs: undefined,
    partsDelivered: 0,
    refused: tooMany,
    stalled: (exchange) => exchange.cut(),
    ended: () => {},
  });
}

/** Serves the application from a plain Node server; `callerOf` identifies the callers. */
export function listenerOf(app: App, callerOf: (socket: Socket) => Caller): RequestListener {
  return (request, response) => app(anExchange(request, response, callerOf(request.socket)), undefined);
}
