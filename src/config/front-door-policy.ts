/**
 * What a front door follows from its parent by default: path entries, and the Shards that say where
 * shards are.
 */
import { everyObjectOf, type LinkPolicy } from '../domain/link-policy.js';
import { pathTypes } from '../domain/path-entry.js';

export const followedByFrontDoor: LinkPolicy = [everyObjectOf([...pathTypes, { group: 'core.kcp.io', resource: 'shards' }])];
