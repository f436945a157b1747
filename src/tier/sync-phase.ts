/**
 * The phase of one slice on its way to the cache at the other end of a link: a table, so that a hole in it does not compile.
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
 * new: it is to be synced, and the other end has nothing of it from here. waiting: it is to be synced, and the other end may have something of
 * it. comparing: `begin` was sent, and both ends sum up what they have. syncing: `begin` was sent, and its objects are being read. sent: all its
 * objects were sent, or the other end has them, and `end` waits until the slice is synced here. current: the other end has `end`, and only
 * changes follow. Changes are sent in all phases but new. If a delete were left out while the slice waits, only `end` would repair
 * that, and a plain writer must be quiet before there is an `end`.
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

/** Undefined where the event cannot happen. */
export function nextPhase(phase: SyncPhase, event: SyncEvent): SyncPhase | undefined {
  return next[phase][event];
}
