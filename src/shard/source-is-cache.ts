/**
 * Whether the source of an agent is a Strata cache. An agent that reads a cache pushes the objects of all shards as those of its own shard. If it pushes into
 * the same cache, each of them comes back as a change, without end.
 *
 * A cache says what it is on every answer. It also says so in `/version`, because something in between may remove headers.
 */
import { CacheError } from '../domain/errors.js';
import { cacheServer, serverHeader } from '../domain/server-header.js';
import { textAt } from '../domain/text-at.js';
import { jsonValue } from '../json/json-value.js';
import type { KubeAccess } from '../kube/kube-access.js';

export const versionPath = '/clusters/*/version';

export class SourceIsCache extends CacheError {
  constructor({ source, server }: Pick<KubeAccess, 'source' | 'server'>) {
    const at = source === undefined ? '' : `${source}: `;
    super(
      `${at}${server} is a Strata cache, and strata push reads a shard of kcp: give it the kubeconfig of the shard. ` +
        `To have another cache hold what this one holds, start that one as its child: strata serve --parent-urls=${new URL(server).origin}`,
    );
  }
}

export function comesFromCache(headers: Readonly<Record<string, unknown>>): boolean {
  return headers[serverHeader] === cacheServer;
}

/** `answer`: to a request of `versionPath`. */
export function isVersionOfCache(answer: string): boolean {
  return textAt(jsonValue(answer), 'gitVersion')?.includes('+strata-') === true;
}
