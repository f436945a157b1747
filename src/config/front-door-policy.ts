/** What a front door follows from the cache above it where no file says so: path entries, and where shards are reached. */
import type { LinkPolicy, LinkRule } from '../domain/link-policy.js';
import { pathTypes } from '../domain/path-entry.js';

const everyObject = { shards: undefined, clusters: undefined, pathPrefix: undefined, labels: [], annotations: [] };
const rule: LinkRule = {
  types: [...pathTypes, { group: 'core.kcp.io', resource: 'shards' }].map(({ group, resource }) => ({
    group,
    resource,
    identity: undefined,
  })),
  ...everyObject,
};

export const followedByFrontDoor: LinkPolicy = [rule];
