/**
 * How far one slice is on its way to the cache at the other end of a link: a table, so that a hole in it does not compile.
 *
 *              restate, another edge,
 *              behind the log                begun      walked     ended
 *   waiting    waiting                       stating    –          –
 *   stating    waiting                       –          told       –
 *   told       waiting                       –          –          in step
 *   in step    waiting                       –          –          in step
 *
 * waiting: it is to be stated. stating: `begin` was sent, and its objects are being read. told: all its objects were sent, and `end` waits
 * for the slice to be synced here. in step: the other end has `end`, and only changes follow. Changes are told in all phases but waiting.
 */
export type CoursePhase = 'waiting' | 'stating' | 'told' | 'in step';

export type CourseEvent = 'wanted' | 'begun' | 'walked' | 'ended';

const next: Readonly<Record<CoursePhase, Readonly<Record<CourseEvent, CoursePhase | undefined>>>> = {
  waiting: { wanted: 'waiting', begun: 'stating', walked: undefined, ended: undefined },
  stating: { wanted: 'waiting', begun: undefined, walked: 'told', ended: undefined },
  told: { wanted: 'waiting', begun: undefined, walked: undefined, ended: 'in step' },
  'in step': { wanted: 'waiting', begun: undefined, walked: undefined, ended: 'in step' },
};

/** Undefined where the event cannot happen. */
export function nextPhase(phase: CoursePhase, event: CourseEvent): CoursePhase | undefined {
  return next[phase][event];
}
