import { test } from '../../support/test.js';
import fc from 'fast-check';
import { backoffMs, reconnect, type Attempt, type Parting, type Reconnect } from '../../../src/sender/reconnect.js';

const bounds = { backoffBaseMs: 200, backoffMaxMs: 30_000, lastedMs: 10_000, retryAfterMaxMs: 300_000 };
const broke: Parting = { lastedMs: 0, reason: undefined, message: '', retryAfterMs: undefined };
const lasted: Parting = { ...broke, lastedMs: 10_000 };

const table: readonly Readonly<{ law: string; from: Attempt; parting: Parting; urls: number; decided: Reconnect }>[] = [
  {
    law: 'a connection that failed is tried at the next URL, after at most the base',
    from: { urlIndex: 0, failures: 0 },
    parting: broke,
    urls: 2,
    decided: { kind: 'connect', attempt: { urlIndex: 1, failures: 1 }, afterMs: 200 },
  },
  {
    law: 'the URLs are tried in turn and the wait doubles',
    from: { urlIndex: 1, failures: 3 },
    parting: broke,
    urls: 2,
    decided: { kind: 'connect', attempt: { urlIndex: 0, failures: 4 }, afterMs: 1_600 },
  },
  {
    law: 'the wait has a bound',
    from: { urlIndex: 0, failures: 5_000 },
    parting: broke,
    urls: 1,
    decided: { kind: 'connect', attempt: { urlIndex: 0, failures: 5_001 }, afterMs: 30_000 },
  },
  {
    law: 'a connection that had lasted is tried again at its URL, as if nothing had failed before',
    from: { urlIndex: 1, failures: 7 },
    parting: lasted,
    urls: 2,
    decided: { kind: 'connect', attempt: { urlIndex: 1, failures: 1 }, afterMs: 200 },
  },
  {
    law: 'a connection that was welcome for too short a time has not lasted',
    from: { urlIndex: 0, failures: 2 },
    parting: { ...broke, lastedMs: 9_999 },
    urls: 1,
    decided: { kind: 'connect', attempt: { urlIndex: 0, failures: 3 }, afterMs: 800 },
  },
  {
    law: 'when a cache stops, the next URL is tried at once, whatever the cache asks for',
    from: { urlIndex: 0, failures: 1 },
    parting: { ...lasted, reason: 'shutdown', retryAfterMs: 60_000 },
    urls: 2,
    decided: { kind: 'connect', attempt: { urlIndex: 1, failures: 1 }, afterMs: 200 },
  },
  {
    law: 'the only cache gets the time it asks for when it stops',
    from: { urlIndex: 0, failures: 1 },
    parting: { ...lasted, reason: 'shutdown', retryAfterMs: 2_000 },
    urls: 1,
    decided: { kind: 'connect', attempt: { urlIndex: 0, failures: 1 }, afterMs: 2_200 },
  },
  {
    law: 'a cache without room gets the time it asks for',
    from: { urlIndex: 0, failures: 0 },
    parting: { ...broke, reason: 'unavailable', retryAfterMs: 1_000 },
    urls: 2,
    decided: { kind: 'connect', attempt: { urlIndex: 1, failures: 1 }, afterMs: 1_200 },
  },
  {
    law: 'a cache that asks for too much time gets only the bound',
    from: { urlIndex: 0, failures: 0 },
    parting: { ...broke, reason: 'unavailable', retryAfterMs: 1e12 },
    urls: 1,
    decided: { kind: 'connect', attempt: { urlIndex: 0, failures: 1 }, afterMs: 300_200 },
  },
  {
    law: 'two processes that replace each other slow down, however long each had its turn',
    from: { urlIndex: 0, failures: 5 },
    parting: { ...lasted, reason: 'replaced' },
    urls: 1,
    decided: { kind: 'connect', attempt: { urlIndex: 0, failures: 6 }, afterMs: 6_400 },
  },
  ...(['fenced', 'forbidden', 'unsupported'] as const).map((reason) => ({
    law: `${reason} ends the run`,
    from: { urlIndex: 0, failures: 0 },
    parting: { ...lasted, reason },
    urls: 3,
    decided: { kind: 'end', reason } as const,
  })),
  {
    law: 'a sender that is forbidden because its certificate has expired reconnects when the cache says, with the present certificate',
    from: { urlIndex: 0, failures: 0 },
    parting: { ...lasted, reason: 'forbidden', retryAfterMs: 0 },
    urls: 1,
    decided: { kind: 'connect', attempt: { urlIndex: 0, failures: 1 }, afterMs: 200 },
  },
];

for (const { law, from, parting, urls, decided } of table) {
  test(law, (t) => {
    t.deepEqual(reconnect(from, parting, { urls, random: () => 1, bounds }), decided);
  });
}

test('a wait is a random time between nothing and its bound', (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000 }), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (failures, random) => {
      const ms = backoffMs(failures, () => random, bounds);
      return ms >= 0 && ms <= Math.min(30_000, 200 * 2 ** (failures - 1));
    }),
  );
  t.is(
    backoffMs(3, () => 0, bounds),
    0,
  );
});
