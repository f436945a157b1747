/**
 * Reads an Accept header as Kubernetes does (munnerz/goautoneg). Clauses are tried by weight, then
 * in order; a clause without a wildcard comes before one with a wildcard. The first clause that can
 * be served wins; if there is none, the answer is 406. A weight that is no number is 0, and clauses
 * of weight 0 are tried last. JSON is served whole, as metadata only, or as a table; YAML is served
 * whole only.
 */
import type { Refusal } from '../../domain/errors.js';
import { parsed, refused, type Parsed } from '../../domain/parsed.js';

export type Form = 'object' | 'partial' | 'table';
export type Answered = Readonly<{ encoding: 'json' | 'yaml'; form: Form; tableVersion: 'v1' | 'v1beta1' }>;

/** The kind of answer, which decides the possible forms. */
export type AnswerShape = 'one' | 'list' | 'watch';

/** `parameters`: names in lower case, values without their quotes. */
export type Clause = Readonly<{ type: string; parameters: ReadonlyMap<string, string>; weight: number }>;

const accepted = 'application/json, application/yaml';
/** A header with more clauses is read as having none. */
const clausesMax = 64;
const weightPattern = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

export function negotiate(accept: string | undefined, asked: AnswerShape): Parsed<Answered> {
  const answered = firstServed(accept, (clause) => serve(clause, asked));
  return answered === undefined ? refused(notAcceptable()) : parsed(answered);
}

/** The result of `serve` for the best clause that it can serve; undefined if there is none. */
export function firstServed<Served>(accept: string | undefined, serve: (clause: Clause) => Served | undefined): Served | undefined {
  for (const clause of parseClauses(accept)) {
    const served = serve(clause);
    if (served !== undefined) return served;
  }
  return undefined;
}

/** Whether the answer will be metadata only. Such a request finds a type by any identity. */
export function acceptsPartial(accept: string | undefined, asked: AnswerShape): boolean {
  const answered = negotiate(accept, asked);
  return answered.kind === 'parsed' && answered.value.form === 'partial';
}

export function notAcceptable(): Refusal {
  return { reason: 'NotAcceptable', message: `only the following media types are accepted: ${accepted}` };
}

/** Whether gzip is accepted with a weight above 0. */
export function acceptsGzip(header: string | string[] | undefined): boolean {
  return String(header ?? '')
    .split(',')
    .some((each) => /^\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/.test(each));
}

function serve({ type, parameters }: Clause, asked: AnswerShape): Answered | undefined {
  const as = parameters.get('as');
  const isWhole = as === undefined && !parameters.has('g') && !parameters.has('v');
  const stream = parameters.get('stream') || 'watch';
  if (stream !== 'watch' || (parameters.get('sv') || 'v1') !== 'v1') return undefined;
  if (type === 'application/yaml') return isWhole && asked !== 'watch' && !parameters.get('stream') ? plain('yaml') : undefined;
  if (type !== 'application/json' && type !== 'application/*' && type !== '*/*') return undefined;
  if (isWhole) return plain('json');
  if (parameters.get('g') !== 'meta.k8s.io') return undefined;
  const version = parameters.get('v');
  if (as === 'Table' && (version === 'v1' || version === 'v1beta1')) return { encoding: 'json', form: 'table', tableVersion: version };
  const wanted = asked === 'list' ? 'PartialObjectMetadataList' : 'PartialObjectMetadata';
  return as === wanted && version === 'v1' ? { encoding: 'json', form: 'partial', tableVersion: 'v1' } : undefined;
}

function plain(encoding: 'json' | 'yaml'): Answered {
  return { encoding, form: 'object', tableVersion: 'v1' };
}

function parseClauses(accept: string | undefined): readonly Clause[] {
  const texts = (accept || 'application/json').split(',', clausesMax + 1);
  return texts.length > clausesMax ? [] : inOrder(texts.map(parseClause));
}

/**
 * Sorts by insertion, as Go does for short lists. `isBefore` is not a consistent order, so another
 * algorithm could give another result.
 */
function inOrder(clauses: Clause[]): readonly Clause[] {
  for (const [from, clause] of clauses.entries()) {
    let at = from;
    for (; at > 0 && isBefore(clause, clauses[at - 1]!); at -= 1) clauses[at] = clauses[at - 1]!;
    clauses[at] = clause;
  }
  return clauses;
}

function isBefore(one: Clause, other: Clause): boolean {
  const isMoreSpecific = (hasWildcard: (type: string) => boolean): boolean => !hasWildcard(one.type) && hasWildcard(other.type);
  return one.weight > other.weight || isMoreSpecific((type) => type.startsWith('*/')) || isMoreSpecific((type) => type.endsWith('/*'));
}

function parseClause(text: string): Clause {
  const [type = '', ...rest] = text.split(';').map((part) => part.trim());
  const parameters = new Map(rest.map(parseParameter));
  const weight = parameters.get('q') || '1';
  return { type: type === '*' ? '*/*' : type.toLowerCase(), parameters, weight: weightPattern.test(weight) ? Number(weight) : 0 };
}

function parseParameter(text: string): [name: string, value: string] {
  const at = text.indexOf('=');
  if (at < 0) return [text.toLowerCase(), ''];
  const value = text.slice(at + 1).trim();
  return [text.slice(0, at).trim().toLowerCase(), value.replace(/^"(.*)"$/, '$1')];
}
