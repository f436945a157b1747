/**
 * Says whether an alert of the chart would fire if `/metrics` kept its present values for the
 * alert's `for`.
 */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { projectFile } from './project.js';

type Rules = Readonly<{ groups: readonly Readonly<{ rules: readonly Readonly<{ alert: string; expr: string }>[] }>[] }>;

/**
 * Matches one metric, or the quotient of two with the same labels, compared with a number. No other
 * form of PromQL is evaluated here.
 */
const comparison = /^(\w+)(?: \/ (\w+))? (==|<|>) ([\d.]+)$/;

/**
 * Throws if the alert does not exist, its expression has another form, or its metric is missing:
 * such an alert would never fire.
 */
export function fires(alert: string, metrics: string): boolean {
  const { groups } = parse(readFileSync(projectFile('deploy', 'helm', 'strata', 'monitoring', 'alerts.yaml'), 'utf8')) as Rules;
  const rule = groups.flatMap(({ rules }) => rules).find((each) => each.alert === alert);
  const [, name = '', divisor, operator, limit] = comparison.exec(rule?.expr ?? '') ?? [];
  const values = seriesOf(name, metrics);
  const divisors = divisor === undefined ? undefined : seriesOf(divisor, metrics);
  if (values.size === 0) throw new Error(`${alert} has no series to look at: ${rule?.expr}`);
  return [...values].some(([labels, value]) => {
    const left = divisors === undefined ? value : value / (divisors.get(labels) ?? Number.NaN);
    return operator === '<' ? left < Number(limit) : operator === '>' ? left > Number(limit) : left === Number(limit);
  });
}

/** The value of each series, by its labels as `/metrics` writes them. */
function seriesOf(name: string, metrics: string): ReadonlyMap<string, number> {
  const lines = [...metrics.matchAll(/^(\w+)(\{[^}]*\})? (\S+)$/gm)].filter(([, found]) => found === name);
  return new Map(lines.map(([, , labels = '', value]) => [labels, Number(value)]));
}
