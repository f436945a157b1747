/**
 * The query of `GET /services/cache/freshness`: `resource`, and optionally `group`, `identity` and
 * `shard`. Any other name is refused. If it were ignored, its sender would take the answer for an
 * answer to the whole question. The query of a look-up follows the same rules
 * (look-up-question.ts).
 */
import { coreAlias, declaredName } from '../domain/declaration.js';
import { badRequest } from '../domain/errors.js';
import { dnsLabelFlaws, dnsSubdomainFlaws } from '../domain/name-syntax.js';
import { parsed, refused, type Parsed } from '../domain/parsed.js';
import { parseShardName } from '../domain/shard.js';
import type { FreshnessQuestion } from '../domain/type-freshness.js';

const names: readonly string[] = ['group', 'resource', 'identity', 'shard'];

export function parseFreshnessQuestion(query: URLSearchParams): Parsed<FreshnessQuestion> {
  const flaw = parameterFlaw(query, names);
  return flaw === undefined ? parseTypeAsked(query) : refused(badRequest(flaw));
}

/** The error if a parameter is unknown, or given more than once. */
export function parameterFlaw(query: URLSearchParams, known: readonly string[]): string | undefined {
  for (const name of query.keys()) {
    const shown = JSON.stringify(name);
    if (!known.includes(name)) return `unknown parameter ${shown}: there are ${known.join(', ')}`;
    if (query.getAll(name).length > 1) return `the parameter ${shown} is given more than once`;
  }
  return undefined;
}

/** Reads the type and the shard, and ignores other parameters. */
export function parseTypeAsked(query: URLSearchParams): Parsed<FreshnessQuestion> {
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

export function flawsOf(what: string, text: string, flaws: readonly string[]): readonly string[] {
  return flaws.map((flaw) => `invalid ${what}: ${JSON.stringify(text)} ${flaw}`);
}
