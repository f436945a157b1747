/**
 * Turns the rounds of a question at each target into figures: medians, and those of the other
 * targets beside them. Pure.
 */
import type { CacheTarget } from './cache-target.js';
import type { Answer, Check, Figure, Limit } from './question.js';
import { median } from './statistics.js';

/** One value of one measurement. Values with the same name, over all rounds, become one figure. */
export type Value = Readonly<{
  name: string;
  value: number;
  unit: string;
  better?: 'more' | 'less';
  limit?: Limit;
  ratioLimit?: Limit;
  ceilingLimit?: Limit;
  note?: string;
}>;

export type Sample = Readonly<{ values: readonly Value[]; checks?: readonly Check[] }>;

export function mergeRounds(label: string, samples: ReadonlyMap<CacheTarget['role'], readonly Sample[]>): Answer {
  const ours = samples.get('measured') ?? [];
  const of = (role: CacheTarget['role'], name: string): readonly number[] =>
    (samples.get(role) ?? []).flatMap(({ values }) => values.filter((one) => one.name === name).map(({ value }) => value));
  const figures = (ours[0]?.values ?? []).map(({ name, value: _, ...rest }): Figure => {
    const rounds = of('measured', name);
    const [ceiling, against] = [median(of('bare', name)), median(of('against', name))];
    return {
      ...rest,
      name: `${name} over ${label}`,
      value: median(rounds),
      ...(rounds.length > 1 && { rounds }),
      ...(!Number.isNaN(ceiling) && { ceiling }),
      ...(!Number.isNaN(against) && { against }),
    };
  });
  const laws = (role: CacheTarget['role']): readonly Check[] => mergeChecks(label, samples.get(role) ?? []);
  return {
    figures: figures.filter(({ value }) => !Number.isNaN(value)),
    checks: laws('measured'),
    remarks: (['against', 'bare'] as const).flatMap((role) =>
      laws(role).flatMap(({ law, holds, detail }) => (holds ? [] : [`not kept by ${role}: ${law} (${detail})`])),
    ),
  };
}

/** One check for each law. It holds if the law holds in every round. */
function mergeChecks(label: string, samples: readonly Sample[]): readonly Check[] {
  const merged = new Map<string, Check>();
  for (const { law, holds, detail } of samples.flatMap(({ checks = [] }) => checks)) {
    const full = `${law}, over ${label}`;
    if (merged.get(full)?.holds !== false) merged.set(full, { law: full, holds, detail });
  }
  return [...merged.values()];
}
