/** Whether an alert of the chart would fire by what `/metrics` says now, if it went on for its time. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { projectFile } from './project.js';

type Rules = Readonly<{ groups: readonly Readonly<{ rules: readonly Readonly<{ alert: string; expr: string }>[] }>[] }>;

/** One metric, or the quotient of two with the same labels, beside a number. Anything else is Prometheus' own. */
const comparison = /^(\w+)(?: \/ (\w+))? (==|<|>) ([\d.]+)$/;

/** Throws where there is no such alert, where its expression is another one, and where the metric is not there: an alert would say nothing then. */
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

/** By their labels, as they are written. */
function seriesOf(name: string, metrics: string): ReadonlyMap<string, number> {
  const lines = [...metrics.matchAll(/^(\w+)(\{[^}]*\})? (\S+)$/gm)].filter(([, found]) => found === name);
  return new Map(lines.map(([, , labels = '', value]) => [labels, Number(value)]));
}
