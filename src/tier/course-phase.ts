/**
 * How far one slice is on its way to the cache at the other end of a link: a table, so that a hole in it does not compile.
 *
 *              restate, another edge,
 *              behind the log                asked      begun      walked     ended
 *   new        new                           –          stating    –          –
 *   waiting    waiting                       comparing  stating    –          –
 *   comparing  waiting                       –          stating    told       –
 *   stating    waiting                       –          –          told       –
 *   told       waiting                       –          –          –          in step
 *   in step    waiting                       –          –          –          in step
 *
 * new: it is to be stated, and the other end has nothing of it from here. waiting: it is to be stated, and the other end may have something of
 * it. comparing: `begin` was sent, and both ends sum up what they have. stating: `begin` was sent, and its objects are being read. told: all its
 * objects were sent, or the other end has them, and `end` waits for the slice to be synced here. in step: the other end has `end`, and only
 * changes follow. Changes are told in all phases but new: a delete that was passed over while the slice waits would be made good by `end`
 * alone, for which a plain writer must have been quiet.
 */
export type CoursePhase = 'new' | 'waiting' | 'comparing' | 'stating' | 'told' | 'in step';

export type CourseEvent = 'wanted' | 'asked' | 'begun' | 'walked' | 'ended';

const no = undefined;
const next: Readonly<Record<CoursePhase, Readonly<Record<CourseEvent, CoursePhase | undefined>>>> = {
  new: { wanted: 'new', asked: no, begun: 'stating', walked: no, ended: no },
  waiting: { wanted: 'waiting', asked: 'comparing', begun: 'stating', walked: no, ended: no },
  comparing: { wanted: 'waiting', asked: no, begun: 'stating', walked: 'told', ended: no },
  stating: { wanted: 'waiting', asked: no, begun: no, walked: 'told', ended: no },
  told: { wanted: 'waiting', asked: no, begun: no, walked: no, ended: 'in step' },
  'in step': { wanted: 'waiting', asked: no, begun: no, walked: no, ended: 'in step' },
};

/** Undefined where the event cannot happen. */
export function nextPhase(phase: CoursePhase, event: CourseEvent): CoursePhase | undefined {
  return next[phase][event];
}
