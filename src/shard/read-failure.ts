/**
 * What a reader does when its shard gives an unexpected answer, as client-go's reflector does it. A table and no more.
 *
 *   resume    the place in the history still counts: go on from there, or begin the sync again if there is none
 *   resync    the place is gone: begin a new sync
 *   list      this shard does not sync by watching: the sync is made of lists
 *   absent    the type is not served here, or not yet: ask again, patiently, and look its identity up again
 */
import { ShardRefusal } from './kube-client.js';

export type ReadReaction = 'resume' | 'resync' | 'list' | 'absent';

/** `asked`: which request failed. */
export function reactTo(error: unknown, asked: 'watch-list' | 'list' | 'watch'): ReadReaction {
  if (!(error instanceof ShardRefusal)) return 'resume';
  const { status, reason, message } = error;
  if (reason === 'Expired' || reason === 'Gone' || status === 410) return 'resync';
  if (status === 504 && message.includes('Too large resource version')) return 'resync';
  if (status === 404) return 'absent';
  if ((status === 400 || status === 422) && asked === 'watch-list') return 'list';
  // The same request would get the same answer next time.
  if ((status === 400 || status === 422) && asked === 'watch') return 'resync';
  return 'resume';
}
