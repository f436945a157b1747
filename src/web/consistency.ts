/**
 * Which requests must wait until this server has published every earlier acknowledged write,
 * whichever server of the store acknowledged it. If the store has one server, no request waits.
 *
 *   resourceVersion        get, list, watch
 *   unset, or a continue   waits: a consistent read
 *   "0"                    does not wait: any state will do
 *   not published here     waits: another server may have shown it
 *
 * Updates, patches and deletes wait, because the published state decides whether they are refused
 * or change nothing. Creates do not wait: the store waits only before it would refuse one.
 */
import type { Revisions } from '../domain/store-port.js';
import { isResourceVersion } from '../domain/revision.js';
import { isRead, type Verb } from './kube-request.js';

/** `query` may still be found invalid later. */
export function needsNewest(verb: Verb, query: URLSearchParams, revisions: Pick<Revisions, 'locate'>): boolean {
  if (verb === 'create') return query.has('dryRun');
  if (!isRead(verb)) return true;
  const resourceVersion = query.get('resourceVersion') ?? '';
  if (query.get('continue') || resourceVersion === '') return true;
  return isResourceVersion(resourceVersion) && revisions.locate(resourceVersion).kind === 'above';
}
