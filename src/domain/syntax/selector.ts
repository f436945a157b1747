/** Kubernetes' label and field selectors. An object must meet both. */
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

/**
 * The same text for selectors with the same terms, whatever their order and duplicates; usable as a
 * map key. No label term contains '|'.
 */
export function formatSelector({ labels, fields }: Selector): string {
  return `${formatTerms(labels.map(formatRequirement))}|${formatTerms(fields.map(formatFieldTerm))}`;
}

function formatTerms(terms: readonly string[]): string {
  return [...new Set(terms)].sort().join(',');
}
