/**
 * The values of a full list of the exports: its time, the server's processor time for each object,
 * and whether every object came.
 */
import type { Loaded } from './go-client.js';
import { noSlower, processorValue } from './loaded-values.js';
import type { Sample } from './merge-rounds.js';
import { countsByResource, exportsType } from './mixed-objects.js';
import { check, type Limit } from './question.js';

const megabyte = 1e6;

export function listValues(
  name: string,
  loaded: Loaded,
  objects: number,
  limit: Readonly<{ ratioLimit?: Limit; ceilingLimit?: Limit }> = {},
): Sample {
  const { operations, elapsedMs, p99Ms, bytes, objects: came } = loaded;
  const expected = (countsByResource(objects).get(exportsType.resource) ?? 0) * operations;
  return {
    values: [
      {
        name,
        value: elapsedMs / operations,
        unit: 'ms',
        better: 'less',
        ...noSlower.less,
        ...limit,
        note: `${expected / operations} objects, ${(bytes / operations / megabyte).toFixed(1)} MB`,
      },
      { name: `${name}, p99`, value: p99Ms, unit: 'ms' },
      processorValue('listed object', loaded, expected),
    ],
    checks: [check('a list has every object once', came === expected, `${came} came, ${expected} are there`)],
  };
}
