/**
 * What a reader asks its server for, and what it asks next when that fails. A table and no more; client-go's reflector and its pager are the model.
 *
 *   asked        what failed                            next
 *   watch-list   not supported (400, 422)               pages, for this sync and every later one
 *                it broke off after it was accepted     pages, for this sync: one that breaks off costs no other
 *   page         its token expired, another came        the same list goes on with that one
 *                its token expired or is not taken      the list anew, in one answer
 *   watch        its revision is gone or is not taken   a new sync
 *   any          the type is not served (404)           a new sync, patiently
 *                anything else                          the same again
 */
import { KubeRefusal } from './kube-client.js';

export type ReadStep =
  /** What is there, as events, and what happens then. */
  | Readonly<{ kind: 'watch-list' }>
  /** `continueToken`: '' at the first page. `revision`: of the first page, undefined before it. `isWhole`: all of the list in one answer. */
  | Readonly<{ kind: 'list'; continueToken: string; revision: string | undefined; isWhole: boolean }>
  | Readonly<{ kind: 'watch'; revision: string }>;

/** `isAbsent`: the type is not served. `refusesWatchList`: every later sync is made of lists. */
export type AfterFailure = Readonly<{ step: ReadStep; isAbsent: boolean; refusesWatchList: boolean }>;

const firstPage: ReadStep & { kind: 'list' } = { kind: 'list', continueToken: '', revision: undefined, isWhole: false };

/** The beginning of a sync. */
export function syncStep({ refusesWatchList }: Readonly<{ refusesWatchList: boolean }>): ReadStep {
  return refusesWatchList ? firstPage : { kind: 'watch-list' };
}

/** `wasAccepted`: the server had answered with 200. */
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
