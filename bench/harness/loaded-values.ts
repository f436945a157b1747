/** Values that several questions share. */
import type { Loaded } from './go-client.js';
import type { Value } from './merge-rounds.js';
import { atLeast, atMost, type Limit } from './question.js';
import { formatShare } from './report.js';

const microsecondsPerMs = 1_000;
const msPerSecond = 1_000;

/** The limit: at least as fast as the other server. */
export const noSlower = { more: { ratioLimit: atLeast(1) }, less: { ratioLimit: atMost(1) } } as const;

/**
 * Rate, delays, and the server's processor time for each operation. The processor time is that of
 * its process, not of the machine.
 */
export function requestValues(
  operation: string,
  loaded: Loaded,
  limits: Readonly<{ ratioLimit?: Limit; ceilingLimit?: Limit }> = {},
): readonly Value[] {
  const { operations, elapsedMs, p50Ms, p99Ms } = loaded;
  return [
    {
      name: `${operation}: rate`,
      value: operations / (elapsedMs / msPerSecond),
      unit: '/s',
      better: 'more',
      ...noSlower.more,
      ...limits,
      note: busy(loaded),
    },
    { name: `${operation}: p50`, value: p50Ms, unit: 'ms' },
    { name: `${operation}: p99`, value: p99Ms, unit: 'ms' },
    processorValue(operation, loaded, operations),
  ];
}

export function processorValue(operation: string, { processorMs }: Loaded, operations: number): Value {
  return {
    name: `processor time per ${operation}`,
    value: (processorMs * microsecondsPerMs) / operations,
    unit: 'µs',
    better: 'less',
    ...noSlower.less,
  };
}

export function busy({ clientBusy, retried }: Loaded): string {
  return `client ${formatShare(clientBusy)} busy${retried > 0 ? `; ${retried} answered 429 and asked again` : ''}`;
}
