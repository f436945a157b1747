/**
 * The query of `GET /services/cache/freshness`: `resource`, and with it `group`, `identity` and `shard`. A name that is not one of these is refused,
 * because an answer to half of a question would be taken for an answer to all of it.
 */
import { coreAlias, declaredName } from '../domain/declaration.js';
import { badRequest } from '../domain/errors.js';
import { dnsLabelFlaws, dnsSubdomainFlaws } from '../domain/name-syntax.js';
import { parsed, refused, type Parsed } from '../domain/parsed.js';
import { parseShardName } from '../domain/shard.js';
import type { FreshnessQuestion } from '../domain/type-freshness.js';

const names: readonly string[] = ['group', 'resource', 'identity', 'shard'];

export function parseFreshnessQuestion(query: URLSearchParams): Parsed<FreshnessQuestion> {
  for (const name of query.keys()) {
    const shown = JSON.stringify(name);
    if (!names.includes(name)) return refused(badRequest(`unknown parameter ${shown}: there are ${names.join(', ')}`));
    if (query.getAll(name).length > 1) return refused(badRequest(`the parameter ${shown} is given more than once`));
  }
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
