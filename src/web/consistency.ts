/**
 * Which requests are answered only once all that was acknowledged before them, by whichever server of the store, is published here. Where a store has one server,
 * it always is.
 *
 *   resourceVersion        get, list, watch
 *   unset, or a continue   waits: a consistent read
 *   "0"                    whatever is here
 *   not published here     waits: another server may have shown it
 *
 * Updates, patches and deletes wait, because they are refused, or found to change nothing, on what is here. Creates do not: the store waits only
 * where it would refuse one.
 */
import type { Revisions } from '../domain/store-port.js';
import { isResourceVersion } from '../domain/revision.js';
import { isRead, type Verb } from './kube-request.js';

/** `query`: of a request that may yet turn out to be wrong. */
export function needsNewest(verb: Verb, query: URLSearchParams, revisions: Pick<Revisions, 'locate'>): boolean {
  if (verb === 'create') return query.has('dryRun');
  if (!isRead(verb)) return true;
  const resourceVersion = query.get('resourceVersion') ?? '';
  if (query.get('continue') || resourceVersion === '') return true;
  return isResourceVersion(resourceVersion) && revisions.locate(resourceVersion).kind === 'above';
}
