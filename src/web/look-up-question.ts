/**
 * The query of `GET /services/cache/look-up`. It needs `version`, `resource`, `cluster` and `name`,
 * and may have `group`, `identity`, `namespace` and `shard`, as in the URL of the object.
 * `reportAgeMaxMs` says how old a report on all shards may be; the default is 0. An empty parameter
 * is refused, except `group`, because the core group has no name.
 */
import { parseCanonicalPath, parseClusterName } from '../domain/cluster.js';
import { badRequest } from '../domain/errors.js';
import { pathSegmentFlaws } from '../domain/name-syntax.js';
import { parsed, refused, type Parsed } from '../domain/parsed.js';
import type { FreshnessQuestion } from '../domain/type-freshness.js';
import { flawsOf, parameterFlaw, parseTypeAsked } from './freshness-question.js';

/** `target`: the URL of the object, with a query that waits for no newer state (consistency.ts). */
export type LookUpQuestion = Readonly<{ type: FreshnessQuestion; reportAgeMaxMs: number; target: string }>;

const required: readonly string[] = ['version', 'resource', 'cluster', 'name'];
const names: readonly string[] = ['group', ...required, 'identity', 'namespace', 'shard', 'reportAgeMaxMs'];
const agePattern = /^\d{1,6}$/;
const inUrl = ['version', 'namespace', 'name'];

export function parseLookUpQuestion(query: URLSearchParams): Parsed<LookUpQuestion> {
  const [flaw] = flawsIn(query);
  if (flaw !== undefined) return refused(badRequest(flaw));
  const asked = parseTypeAsked(query);
  if (asked.kind === 'refused') return asked;
  return parsed({ type: asked.value, reportAgeMaxMs: Number(query.get('reportAgeMaxMs') ?? '0'), target: targetOf(query, asked.value) });
}

function* flawsIn(query: URLSearchParams): Generator<string> {
  const flaw = parameterFlaw(query, names);
  if (flaw !== undefined) yield flaw;
  for (const name of required) if (!query.has(name)) yield `a ${name} is required`;
  for (const [name, value] of query) if (value === '' && name !== 'group') yield `the parameter ${JSON.stringify(name)} is empty`;
  const ageText = query.get('reportAgeMaxMs');
  if (ageText !== null && !agePattern.test(ageText))
    yield `invalid reportAgeMaxMs: ${JSON.stringify(ageText)} is no number of milliseconds`;
  const cluster = query.get('cluster') ?? '';
  if (parseClusterName(cluster) === undefined && parseCanonicalPath(cluster) === undefined)
    yield `invalid cluster: ${JSON.stringify(cluster)} does not match the regex`;
  for (const name of inUrl) yield* flawsOf(name, query.get(name) ?? '', pathSegmentFlaws(query.get(name) ?? ''));
}

function targetOf(query: URLSearchParams, { group, resource, identity, shard }: FreshnessQuestion): string {
  const [version, namespace, name] = inUrl.map((each) => encodeURIComponent(query.get(each) ?? ''));
  const api = group === '' ? `api/${version}` : `apis/${group}/${version}`;
  const inNamespace = namespace === '' ? '' : `namespaces/${namespace}/`;
  const type = identity === undefined ? resource : `${resource}:${identity}`;
  return `/services/cache/shards/${shard ?? '*'}/clusters/${query.get('cluster')}/${api}/${inNamespace}${type}/${name}?resourceVersion=0`;
}
