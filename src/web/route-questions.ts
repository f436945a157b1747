/** Queries of routes beside the kube API. */
import { coreAlias, declaredName } from '../domain/catalogue/declaration.js';
import { parseCanonicalPath, parseClusterName } from '../domain/cluster.js';
import { badRequest } from '../domain/errors.js';
import { dnsLabelFlaws, dnsSubdomainFlaws, pathSegmentFlaws } from '../domain/syntax/name-syntax.js';
import { parsed, refused, type Parsed } from '../domain/parsed.js';
import { parseShardName } from '../domain/shard.js';
import type { FreshnessQuestion } from '../domain/type-freshness.js';

const names: readonly string[] = ['group', 'resource', 'identity', 'shard'];

/**
 * The query of `GET /services/cache/freshness`: `resource`, and optionally `group`, `identity` and
 * `shard`. Any other name is refused, because its sender would believe that it affects the answer.
 */
export function parseFreshnessQuestion(query: URLSearchParams): Parsed<FreshnessQuestion> {
  const flaw = parameterFlaw(query, names);
  return flaw === undefined ? parseTypeAsked(query) : refused(badRequest(flaw));
}

/** Why a parameter is refused: it is unknown, or given more than once. */
function parameterFlaw(query: URLSearchParams, known: readonly string[]): string | undefined {
  for (const name of query.keys()) {
    const shown = JSON.stringify(name);
    if (!known.includes(name)) return `unknown parameter ${shown}: the parameters are ${known.join(', ')}`;
    if (query.getAll(name).length > 1) return `the parameter ${shown} is given more than once`;
  }
  return undefined;
}

function parseTypeAsked(query: URLSearchParams): Parsed<FreshnessQuestion> {
  const [group, resource, identity, shard] = names.map((name) => query.get(name) ?? '') as [string, string, string, string];
  if (resource === '') return refused(badRequest('a resource is required'));
  const flaws = [
    ...(group === '' ? [] : flawsOf('group', group, dnsSubdomainFlaws(group))),
    ...flawsOf('resource', resource, dnsLabelFlaws(resource)),
    ...(identity === '' || declaredName.test(identity) ? [] : flawsOf('identity', identity, ['does not match the regex'])),
  ];
  if (flaws[0] !== undefined) return refused(badRequest(flaws[0]));
  const parsedShard = parseShardName(shard);
  if (shard !== '' && parsedShard === undefined)
    return refused(badRequest(`invalid shard: ${JSON.stringify(shard)} does not match the regex`));
  return parsed({
    group: group === coreAlias ? '' : group,
    resource,
    identity: identity === '' ? undefined : identity,
    shard: parsedShard,
  });
}

function flawsOf(what: string, text: string, flaws: readonly string[]): readonly string[] {
  return flaws.map((flaw) => `invalid ${what}: ${JSON.stringify(text)} ${flaw}`);
}

/**
 * The query of `GET /services/cache/look-up`: `version`, `resource`, `cluster` and `name`, and
 * optionally `group`, `identity`, `namespace` and `shard`, as in the URL of the object.
 * `reportAgeMaxMs` says how old a report on all shards may be; the default is 0. An empty parameter
 * is refused, except `group`, because the core group has no name.
 *
 * `target`: the URL of the object, with a query that waits for no newer state (kube-request.ts).
 */
export type LookUpQuestion = Readonly<{ type: FreshnessQuestion; reportAgeMaxMs: number; target: string }>;

const required: readonly string[] = ['version', 'resource', 'cluster', 'name'];
const lookUpNames: readonly string[] = ['group', ...required, 'identity', 'namespace', 'shard', 'reportAgeMaxMs'];
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
  const flaw = parameterFlaw(query, lookUpNames);
  if (flaw !== undefined) yield flaw;
  for (const name of required) if (!query.has(name)) yield `a ${name} is required`;
  for (const [name, value] of query) if (value === '' && name !== 'group') yield `the parameter ${JSON.stringify(name)} is empty`;
  const ageText = query.get('reportAgeMaxMs');
  if (ageText !== null && !agePattern.test(ageText))
    yield `invalid reportAgeMaxMs: ${JSON.stringify(ageText)} is not a number of milliseconds with at most 6 digits`;
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

/**
 * The query of `GET /services/cache/resolve`: exactly one `path`. A text that is not a path is no
 * error here; the answer reports it.
 */
export function parseResolveQuestion(query: URLSearchParams): Parsed<string> {
  const [path, ...others] = query.getAll('path');
  if (path === undefined || others.length > 0 || query.size > 1) return refused(badRequest('exactly one parameter is required: path'));
  return parsed(path);
}
