/** What narrows a list or a watch within its scope: Kubernetes' label and field selectors, both of which an object must meet. */
import { formatFieldTerm, matchesFields } from './field-selector.js';
import type { FieldTerm } from './field-selector.js';
import { formatRequirement, matchesLabels } from './label-selector.js';
import type { Requirement } from './label-selector.js';

export { parseFieldSelector } from './field-selector.js';
export { matchesLabels, parseLabelSelector } from './label-selector.js';

export type Selector = Readonly<{ labels: readonly Requirement[]; fields: readonly FieldTerm[] }>;

export function isEverything({ labels, fields }: Selector): boolean {
  return labels.length === 0 && fields.length === 0;
}

/** The ONE test of whether an object meets a selector. */
export function meetsSelector(
  { labels, fields }: Selector,
  object: Readonly<{ namespace: string; name: string; labels: ReadonlyMap<string, string> }>,
): boolean {
  return matchesFields(fields, object) && matchesLabels(labels, object.labels);
}

/** One text for selectors with the same terms, in whatever order and however often: the key of a map. No label term holds a '|'. */
export function formatSelector({ labels, fields }: Selector): string {
  return `${formatTerms(labels.map(formatRequirement))}|${formatTerms(fields.map(formatFieldTerm))}`;
}

function formatTerms(terms: readonly string[]): string {
  return [...new Set(terms)].sort().join(',');
}
