/** Checks that the members of etcd have a version that this engine supports. */
import type { Log } from '../../diagnostics/log.js';
import { CacheError } from '../../domain/errors.js';
import type { EtcdClient } from './client.js';
import { EtcdError } from './etcd-error.js';

const [neededMajor, neededMinor] = [3, 5];
const versionPattern = /^(\d{1,6})\.(\d{1,6})(?:\.\d{1,6})?(?:[+-]|$)/;

/**
 * Asks every member, because an unfinished upgrade leaves several versions. A member that does not
 * answer is only logged. Throws CacheError.
 */
export async function assertVersions(client: Pick<EtcdClient, 'statuses'>, log: Log): Promise<void> {
  for (const { endpoint, status } of await client.statuses()) {
    if (status instanceof EtcdError) log.warn('etcd.version-unknown', { endpoint, message: status.message });
    else if (!isRecentEnough(status.version))
      throw new CacheError(
        `etcd at ${endpoint} reports the version ${JSON.stringify(status.version.slice(0, 40))}: every member needs ${neededMajor}.${neededMinor} or later`,
      );
  }
}

function isRecentEnough(version: string): boolean {
  const [, major, minor] = versionPattern.exec(version) ?? [];
  return Number(major) > neededMajor || (Number(major) === neededMajor && Number(minor) >= neededMinor);
}
