/**
 * Whether an agent can read its source. Two kubeconfigs are easily mistaken for that of a shard:
 *
 * - That of a Strata cache. An agent that reads a cache pushes the objects of all shards as those
 *   of its own shard. If it pushes into the same cache, each object comes back as a change, without
 *   end. A cache names itself in every response header. It also does so in `/version`, because an
 *   intermediary may remove headers.
 * - That of a front proxy, or of a user outside `system:masters`. kcp then forbids every request
 *   for all logical clusters at once, including `/version`.
 */
import { CacheError } from '../domain/errors.js';
import { cacheServer, serverHeader } from '../domain/server-header.js';
import { textAt } from '../domain/text-at.js';
import { jsonValue } from '../json/json-value.js';
import type { KubeAccess } from '../kube/kube-access.js';
import { KubeRefusal } from '../kube/kube-client.js';

export const versionPath = '/clusters/*/version';

type Source = Pick<KubeAccess, 'source' | 'server'>;

export class SourceIsCache extends CacheError {
  constructor(source: Source) {
    super(
      `${named(source)} is a Strata cache, and strata push reads a shard of kcp: give it the kubeconfig of the shard. ` +
        `To have another cache hold what this one holds, start that one as its child: strata serve --parent-urls=${new URL(source.server).origin}`,
    );
  }
}

export class SourceForbidsAll extends CacheError {
  constructor(source: Source, { message }: KubeRefusal) {
    super(
      `${named(source)} does not let this user read all logical clusters at once (${message}). Give strata push the shard itself, not a front proxy, ` +
        'and a user in the group system:masters: in the admin.kubeconfig of kcp that is --context shard-base',
    );
  }
}

function named({ source, server }: Source): string {
  return source === undefined ? server : `${source}: ${server}`;
}

/**
 * `error`: from a request of `versionPath`. A 403 without a Status may be from an intermediary, and
 * be temporary.
 */
export function isForbiddenByKcp(error: unknown): error is KubeRefusal {
  return error instanceof KubeRefusal && error.status === 403 && error.reason === 'Forbidden';
}

export function comesFromCache(headers: Readonly<Record<string, unknown>>): boolean {
  return headers[serverHeader] === cacheServer;
}

/** `answer`: the response to a request of `versionPath`. */
export function isVersionOfCache(answer: string): boolean {
  return textAt(jsonValue(answer), 'gitVersion')?.includes('+strata-') === true;
}
