/**
 * A table of a reader's requests, and of its next request after a failure. client-go's reflector
 * and its pager are the model.
 *
 *   request      failure                                next
 *   watch-list   not supported (400, 422)               pages, in this and every later sync
 *                broke off after it was accepted        pages, in this sync only
 *   page         its token expired, with a new token    the same list, with the new token
 *                its token expired or is refused        the list again, in one answer
 *   watch        its revision is gone or is refused     a new sync
 *   any          the type is not served (404)           a new sync; when: absent-types.ts
 *                anything else                          the same again
 */
import { KubeRefusal } from './kube-client.js';

export type ReadStep =
  | Readonly<{ kind: 'watch-list' }>
  /**
   * `continueToken`: '' at the first page. `revision`: the first page's; undefined until that page
   * was read. `isWhole`: the whole list in one answer.
   */
  | Readonly<{ kind: 'list'; continueToken: string; revision: string | undefined; isWhole: boolean }>
  | Readonly<{ kind: 'watch'; revision: string }>;

/** `isAbsent`: the type is not served. `refusesWatchList`: every later sync uses lists. */
export type AfterFailure = Readonly<{ step: ReadStep; isAbsent: boolean; refusesWatchList: boolean }>;

const firstPage: ReadStep & { kind: 'list' } = { kind: 'list', continueToken: '', revision: undefined, isWhole: false };

export function syncStep({ refusesWatchList }: Readonly<{ refusesWatchList: boolean }>): ReadStep {
  return refusesWatchList ? firstPage : { kind: 'watch-list' };
}

/** `wasAccepted`: whether the server had answered 200. */
export function stepAfter(
  step: ReadStep,
  error: unknown,
  { wasAccepted, refusesWatchList }: Readonly<{ wasAccepted: boolean; refusesWatchList: boolean }>,
): AfterFailure {
  const { status = 0, reason = '', message = '', continueToken = '' } = error instanceof KubeRefusal ? error : {};
  const isGone =
    reason === 'Expired' || reason === 'Gone' || status === 410 || (status === 504 && message.includes('Too large resource version'));
  const isNotTaken = status === 400 || status === 422;
  const next = (after: ReadStep): AfterFailure => ({ step: after, isAbsent: false, refusesWatchList });

  if (status === 404) return { ...next(syncStep({ refusesWatchList })), isAbsent: true };
  switch (step.kind) {
    case 'watch-list':
      if (isNotTaken) return { ...next(firstPage), refusesWatchList: true };
      return next(wasAccepted ? firstPage : step);
    case 'list':
      if (isGone && continueToken !== '') return next({ ...step, continueToken });
      if (step.continueToken !== '' && (isGone || isNotTaken)) return next({ ...firstPage, isWhole: true });
      return next(step);
    case 'watch':
      return next(isGone || isNotTaken ? syncStep({ refusesWatchList }) : step);
  }
}
