/**
 * The phases of one slice on its way to the other end of a link: a table, so that a missing case
 * does not compile.
 *
 *              resync, another link filter,
 *              behind the log                asked      begun      walked     ended
 *   new        new                           –          syncing    –          –
 *   waiting    waiting                       comparing  syncing    –          –
 *   comparing  waiting                       –          syncing    sent       –
 *   syncing    waiting                       –          –          sent       –
 *   sent       waiting                       –          –          –          current
 *   current    waiting                       –          –          –          current
 *
 *   new        to be synced; the other end has nothing of it from here
 *   waiting    to be synced; the other end may have something of it
 *   comparing  `begin` was sent; both ends sum up what they have
 *   syncing    `begin` was sent; the sender reads the objects
 *   sent       all objects were sent, or compared equal; `end` waits until the slice is synced here
 *   current    the other end has `end`; only changes follow
 *
 * The sender sends changes in all phases but new. If it left out a delete while the slice waits,
 * only `end` would repair that. The slices of a plain writer get an `end` only once the writer has
 * been quiet for a while.
 */
export type SyncPhase = 'new' | 'waiting' | 'comparing' | 'syncing' | 'sent' | 'current';

export type SyncEvent = 'wanted' | 'asked' | 'begun' | 'walked' | 'ended';

const no = undefined;
const next: Readonly<Record<SyncPhase, Readonly<Record<SyncEvent, SyncPhase | undefined>>>> = {
  new: { wanted: 'new', asked: no, begun: 'syncing', walked: no, ended: no },
  waiting: { wanted: 'waiting', asked: 'comparing', begun: 'syncing', walked: no, ended: no },
  comparing: { wanted: 'waiting', asked: no, begun: 'syncing', walked: 'sent', ended: no },
  syncing: { wanted: 'waiting', asked: no, begun: no, walked: 'sent', ended: no },
  sent: { wanted: 'waiting', asked: no, begun: no, walked: no, ended: 'current' },
  current: { wanted: 'waiting', asked: no, begun: no, walked: no, ended: 'current' },
};

/** Undefined if the event cannot happen in the phase. */
export function nextPhase(phase: SyncPhase, event: SyncEvent): SyncPhase | undefined {
  return next[phase][event];
}
