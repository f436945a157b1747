/** What a front door follows from the cache above it where no file says so: path entries, and where shards are reached. */
import { everyObjectOf, type LinkPolicy } from '../domain/link-policy.js';
import { pathTypes } from '../domain/path-entry.js';

export const followedByFrontDoor: LinkPolicy = [everyObjectOf([...pathTypes, { group: 'core.kcp.io', resource: 'shards' }])];
