/**
 * How far one slice is on its way to the cache at the other end of a link: a table, so that a hole in it does not compile.
 *
 *              restate, another edge,
 *              behind the log                begun      walked     ended
 *   new        new                           stating    –          –
 *   waiting    waiting                       stating    –          –
 *   stating    waiting                       –          told       –
 *   told       waiting                       –          –          in step
 *   in step    waiting                       –          –          in step
 *
 * new: it is to be stated, and the other end has nothing of it from here. waiting: it is to be stated, and the other end may have something of
 * it. stating: `begin` was sent, and its objects are being read. told: all its objects were sent, and `end` waits for the slice to be synced
 * here. in step: the other end has `end`, and only changes follow. Changes are told in all phases but new: a delete that was passed over
 * while the slice waits would be made good by `end` alone, for which a plain writer must have been quiet.
 */
export type CoursePhase = 'new' | 'waiting' | 'stating' | 'told' | 'in step';

export type CourseEvent = 'wanted' | 'begun' | 'walked' | 'ended';

const next: Readonly<Record<CoursePhase, Readonly<Record<CourseEvent, CoursePhase | undefined>>>> = {
  new: { wanted: 'new', begun: 'stating', walked: undefined, ended: undefined },
  waiting: { wanted: 'waiting', begun: 'stating', walked: undefined, ended: undefined },
  stating: { wanted: 'waiting', begun: undefined, walked: 'told', ended: undefined },
  told: { wanted: 'waiting', begun: undefined, walked: undefined, ended: 'in step' },
  'in step': { wanted: 'waiting', begun: undefined, walked: undefined, ended: 'in step' },
};

/** Undefined where the event cannot happen. */
export function nextPhase(phase: CoursePhase, event: CourseEvent): CoursePhase | undefined {
  return next[phase][event];
}
