/**
 * What a client accepts. Clauses are tried by weight, then in order; the first that can be served wins; none: 406.
 * JSON is served whole, as metadata only, or as a table; YAML whole only.
 */
import type { Refusal } from '../domain/errors.js';
import { parsed, refused, type Parsed } from '../domain/parsed.js';

export type Form = 'object' | 'partial' | 'table';
export type Answered = Readonly<{ encoding: 'json' | 'yaml'; form: Form; tableVersion: 'v1' | 'v1beta1' }>;

/** What is asked for decides which transforms are possible: a list, one object, or the events of a watch. */
export type Asked = 'one' | 'list' | 'watch';

type Clause = Readonly<{ type: string; parameters: ReadonlyMap<string, string>; weight: number }>;

const accepted = 'application/json, application/yaml';
const clausesMax = 64;

export function negotiate(accept: string | undefined, asked: Asked): Parsed<Answered> {
  const clauses = parseClauses(accept ?? '');
  if (clauses.length === 0) return parsed(plain('json'));
  for (const clause of clauses) {
    const answered = serve(clause, asked);
    if (answered !== undefined) return parsed(answered);
  }
  return refused(notAcceptable());
}

/** Whether the answer will be metadata only, so that a type may be found by any identity. */
export function asksPartial(accept: string | undefined): boolean {
  return (
    parseClauses(accept ?? '')[0]
      ?.parameters.get('as')
      ?.startsWith('PartialObjectMetadata') ?? false
  );
}

export function notAcceptable(): Refusal {
  return { reason: 'NotAcceptable', message: `only the following media types are accepted: ${accepted}` };
}

/** Whether an Accept-Encoding has gzip with a weight above 0. */
export function acceptsGzip(header: string | string[] | undefined): boolean {
  return String(header ?? '')
    .split(',')
    .some((each) => /^\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/.test(each));
}

function serve({ type, parameters }: Clause, asked: Asked): Answered | undefined {
  const as = parameters.get('as');
  if (type === 'application/yaml') return as === undefined && asked !== 'watch' ? plain('yaml') : undefined;
  if (type !== 'application/json' && type !== 'application/*' && type !== '*/*') return undefined;
  if (as === undefined) return plain('json');
  if (parameters.get('g') !== 'meta.k8s.io') return undefined;
  const version = parameters.get('v');
  if (as === 'Table' && (version === 'v1' || version === 'v1beta1')) return { encoding: 'json', form: 'table', tableVersion: version };
  const wanted = asked === 'list' ? 'PartialObjectMetadataList' : 'PartialObjectMetadata';
  return as === wanted && version === 'v1' ? { encoding: 'json', form: 'partial', tableVersion: 'v1' } : undefined;
}

function plain(encoding: 'json' | 'yaml'): Answered {
  return { encoding, form: 'object', tableVersion: 'v1' };
}

function parseClauses(accept: string): readonly Clause[] {
  return accept
    .split(',', clausesMax)
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .map(parseClause)
    .filter(({ weight }) => weight > 0)
    .toSorted((a, b) => b.weight - a.weight);
}

function parseClause(text: string): Clause {
  const [type = '', ...rest] = text.split(';').map((part) => part.trim());
  const parameters = new Map(
    rest.map((part): [string, string] => {
      const at = part.indexOf('=');
      return at < 0 ? [part, ''] : [part.slice(0, at).trim(), part.slice(at + 1).trim()];
    }),
  );
  const weight = Number(parameters.get('q') ?? '1');
  return { type: type.toLowerCase(), parameters, weight: Number.isFinite(weight) ? weight : 0 };
}
