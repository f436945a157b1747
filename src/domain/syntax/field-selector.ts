/**
 * Kubernetes' field selector language, as apimachinery's fields.ParseSelector reads it: `=`, `==`,
 * `!=`, comma for AND, and '\' before '\', ',' and '=' in values. Clients can select a cache's
 * objects by name and namespace only.
 */
import { badRequest, Refused } from '../errors.js';
import { attempt } from '../parsed.js';
import type { Parsed } from '../parsed.js';
import { meetsValueRule, type ValueRule } from './label-rules.js';

export type FieldTerm = Readonly<{ field: 'metadata.name' | 'metadata.namespace'; kind: 'is' | 'is not'; value: string }>;

export function parseFieldSelector(text: string): Parsed<readonly FieldTerm[]> {
  return attempt(() => {
    const terms = splitTerms(text)
      .filter((term) => term !== '')
      .sort();
    return terms.map((term) => parseTerm(term, text));
  });
}

/**
 * The merged rule of each field, computed on first use, so that a thousand terms on a name cost one
 * look-up.
 */
const rulesOf = new WeakMap<readonly FieldTerm[], Readonly<Record<FieldTerm['field'], ValueRule>>>();

export function matchesFields(terms: readonly FieldTerm[], { namespace, name }: { namespace: string; name: string }): boolean {
  const rules = rulesOf.get(terms) ?? {
    'metadata.name': ruleOf(terms, 'metadata.name'),
    'metadata.namespace': ruleOf(terms, 'metadata.namespace'),
  };
  rulesOf.set(terms, rules);
  return meetsValueRule(rules['metadata.name'], name) && meetsValueRule(rules['metadata.namespace'], namespace);
}

/** A field that must equal two different values matches nothing. */
function ruleOf(terms: readonly FieldTerm[], field: FieldTerm['field']): ValueRule {
  const own = terms.filter((term) => term.field === field);
  const valuesOf = (kind: FieldTerm['kind']): ReadonlySet<string> =>
    new Set(own.filter((term) => term.kind === kind).map(({ value }) => value));
  const wanted = valuesOf('is');
  return { allowed: wanted.size === 0 ? undefined : wanted.size === 1 ? wanted : new Set(), banned: valuesOf('is not') };
}

export function formatFieldTerm({ field, kind, value }: FieldTerm): string {
  return `${field}${kind === 'is' ? '=' : '!='}${value.replaceAll(/[\\,=]/g, '\\$&')}`;
}

/** Splits at commas without a backslash before them; the terms keep their backslashes. */
function splitTerms(text: string): readonly string[] {
  const terms: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === ',') {
      terms.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return [...terms, text.slice(start)];
}

const operatorPattern = /!=|==?/;

function parseTerm(term: string, selector: string): FieldTerm {
  const found = operatorPattern.exec(term);
  if (found === null) throw new Refused(badRequest(`invalid selector: '${selector}'; can't understand '${term}'`));
  const [operator] = found;
  const field = term.slice(0, found.index);
  const value = unescapeValue(term.slice(found.index + operator.length));
  if (field !== 'metadata.name' && field !== 'metadata.namespace') throw new Refused(badRequest(`field label not supported: ${field}`));
  return { field, kind: operator === '!=' ? 'is not' : 'is', value };
}

function unescapeValue(text: string): string {
  return text.replaceAll(/\\(.?)|[,=]/gsu, (found: string, escaped: string | undefined) => {
    if (escaped === undefined) throw invalid(`unescaped character in value: ${found.charCodeAt(0)}`);
    if (escaped === '' || !'\\,='.includes(escaped)) throw invalid(`invalid escape sequence: ${found}`);
    return escaped;
  });
}

function invalid(message: string): Refused {
  return new Refused(badRequest(`invalid field selector: ${message}`));
}
