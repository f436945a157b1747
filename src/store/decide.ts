/**
 * What becomes of what an engine is asked: its rules, without a store. An engine reads the facts, in the order in which it was asked, and writes what follows.
 *
 *   put, delete   of a shard elsewhere: only if it takes it. A shard that is not local becomes local and plain, in the next term. What a pusher did not send
 *                 makes its slice unsynced
 *   what speaks   a pusher whose shard is local and of its term, a link that the shard comes over; all else is fenced
 *   begin         the whole slice is unsynced until its end; what it has of one logical cluster leaves it as it is
 *   upsert        the same body confirms; another is put, and came over the speaker's link
 *   invalidate    the slice is unsynced, and what is under way of it void
 *   end           synced, once nothing is left that was not sent; without a begin only if the slice is current under that filter already
 *   claim         `judgeClaim`; acquire: `arrived` (domain/claim.ts)
 *   meet          another cache at the other end: no slice that came over the link is current; if it is the parent, its shards are nobody's
 *   reach         without a position no slice that came over the link is current
 *   leave         the link goes, and its shards are nobody's
 *   forget        a shard that was removed and holds nothing goes with its slices
 *   clear, drop   its slices were never synced; what was written since stays
 *   assume        what a plain writer has written counts as synced
 *
 * DC1 A shard that comes by another neighbour now, or by none, has no slice that is synced, and nothing of it is under way.
 */
import assert from 'node:assert/strict';
import { noBuckets } from '../domain/buckets.js';
import { isElsewhere, writtenPlainly, type ShardState } from '../domain/claim.js';
import { decide, type Mutation, type Outcome } from '../domain/mutation.js';
import { linkOf, linksMax, type LinkState, type Push, type PushOutcome, type SliceState, type Speaker } from '../domain/push.js';
import type { Revision } from '../domain/revision.js';
import type { Neighbour } from '../domain/via.js';
import type { Sync } from './syncs.js';

/** How far a slice is synced, and over which link. */
export type SliceFacts = Pick<SliceState, 'syncedTerm' | 'everSynced' | 'filterHash' | 'cameOver'>;

type PushOf<Kind extends Push['kind']> = Extract<Push, { kind: Kind }>;
type Refused = Extract<Outcome, { kind: 'refused' }>;

export const neverSynced: SliceFacts = { syncedTerm: 0, everSynced: false, filterHash: '', cameOver: '' };

export function sameFacts(one: SliceFacts, other: SliceFacts): boolean {
  const isSynced = one.syncedTerm === other.syncedTerm && one.everSynced === other.everSynced;
  return isSynced && one.filterHash === other.filterHash && one.cameOver === other.cameOver;
}

/** It counts as not synced, and is not current. */
export function unsynced<Facts extends SliceFacts>(facts: Facts): Facts {
  return { ...facts, syncedTerm: 0, filterHash: '' };
}

/** It is not current with the link that it comes over. */
export function stale<Facts extends SliceFacts>(facts: Facts): Facts {
  return { ...facts, filterHash: '' };
}

/** As if it had never been synced; which link has brought it stays. */
export function cleared<Facts extends SliceFacts>(facts: Facts): Facts {
  return { ...facts, ...neverSynced, cameOver: facts.cameOver };
}

/** What a plain writer wrote counts as synced by this term. */
export function assumed<Facts extends SliceFacts>(facts: Facts, term: ShardState['term']): Facts {
  return { ...facts, syncedTerm: term, everSynced: true, cameOver: '' };
}

/** After the end of a sync of the whole slice. */
export function synced({ by, filterHash, term }: PushOf<'end'>, shard: ShardState | undefined): SliceFacts {
  assert(shard !== undefined, 'whoever ends a sync has the shard');
  const cameOver = linkOf(by);
  return { syncedTerm: term ?? shard.term, everSynced: true, filterHash: cameOver === '' ? '' : filterHash, cameOver };
}

/** `shard`: the state in which it is written. `settles`: that is a new one. `unsyncs`: its slice counts as not synced from now on. */
type Written = Readonly<{ kind: 'write'; shard: ShardState; settles: boolean; unsyncs: boolean }>;

/** `held`: the revision of the object that the key has. */
export function judgeMutation(
  mutation: Mutation,
  { own, known, held }: Readonly<{ own: string; known: ShardState | undefined; held: Revision | undefined }>,
): Refused | Written {
  if (mutation.takes !== true && isElsewhere(known, own)) return { kind: 'refused', why: 'elsewhere' };
  const verdict = decide(mutation, held);
  if (verdict !== 'write') return { kind: 'refused', why: verdict };
  const isLocal = known?.via === 'local';
  const shard = isLocal ? known : writtenPlainly(own, known, mutation.key.shard);
  // A pusher that comes back syncs again what others have written. While it is there, only the shard itself may (intake/plain-writes.ts).
  const unsyncs = mutation.bySource !== true && !keepsNames(mutation) && !shard.plain;
  return { kind: 'write', shard, settles: !isLocal, unsyncs };
}

/** Whether it changes names alone that are kept on copies: whether the shard still has the object, that does not say. */
export function keepsNames(mutation: Mutation): boolean {
  return mutation.kind === 'put' && mutation.keeps === true;
}

/** Whether it is heard for a shard. */
export function speaksFor(by: Speaker, shard: ShardState): boolean {
  if (by.kind === 'link') return shard.via === by.neighbour;
  return shard.via === 'local' && !shard.removed && shard.term === by.term;
}

/** What a link is that opens: that of the same cache, the first of its neighbour, or that of another cache than before. */
export type Meeting = Readonly<{ kind: 'same' | 'first' | 'another' }> | Extract<PushOutcome, { kind: 'bound' | 'full' }>;

/** `nameWith`: by which name the child last came that has the id. */
export function judgeMeeting(
  { neighbour, cacheId }: PushOf<'meet'>,
  {
    known,
    links,
    nameWith,
  }: Readonly<{ known: Pick<LinkState, 'cacheId'> | undefined; links: number; nameWith: (cacheId: string) => string | undefined }>,
): Meeting {
  if (known?.cacheId === cacheId) return { kind: 'same' };
  if (neighbour !== 'parent') {
    const name = nameWith(cacheId);
    if (name !== undefined) return { kind: 'bound', name };
    if (known === undefined && links >= linksMax) return { kind: 'full' };
  }
  return { kind: known === undefined ? 'first' : 'another' };
}

/** Whether the shards of the neighbour are nobody's from now on: what another parent has of them is not known. */
export function losesShards(neighbour: Neighbour, { kind }: Meeting): boolean {
  return neighbour === 'parent' && kind === 'another';
}

/**
 * What an `end` does: `walk` removes first what was not sent; `ended` has nothing to remove; `synced` had no begin, and needs none. `resumed`: the walk that
 * an earlier step of it has begun.
 */
export function judgeEnd(
  { by, filterHash, buckets }: PushOf<'end'>,
  { sync, resumed, facts }: Readonly<{ sync: Sync | undefined; resumed: number | undefined; facts: Pick<SliceFacts, 'filterHash'> }>,
): 'walk' | 'ended' | 'synced' | 'unbegun' {
  // A sync with another walk, or none, began meanwhile.
  if (sync !== undefined && resumed !== undefined && sync.walk?.number !== resumed) return 'unbegun';
  if (sync !== undefined) return buckets === noBuckets ? 'ended' : 'walk';
  const isCurrent = by.kind === 'link' && filterHash !== '' && facts.filterHash === filterHash;
  return resumed === undefined && isCurrent ? 'synced' : 'unbegun';
}

/** `digest`: that of what is here. */
export function compared(
  asked: PushOf<'compare'>,
  digest: string,
  { filterHash }: Pick<SliceFacts, 'filterHash'>,
): Extract<PushOutcome, { kind: 'unchanged' | 'differs' }> {
  return asked.digest === digest ? { kind: 'unchanged' } : { kind: 'differs', digest, isCurrent: filterHash !== '' };
}

/** Whether a shard may go; `holds`: it has objects. */
export function isForgettable(shard: ShardState | undefined, holds: boolean): shard is ShardState {
  return shard?.removed === true && !holds;
}

/** Whether what plain writers wrote to it may count as synced. */
export function isAssumable(shard: ShardState | undefined): shard is ShardState {
  return shard?.via === 'local' && shard.plain;
}

/** Whether a `clear` has nothing to do, because somebody has the shard by now. */
export function isOvertaken({ onlyRemoved = false }: PushOf<'clear'>, shard: ShardState | undefined): boolean {
  return onlyRemoved && shard?.removed !== true;
}

/** Nobody's: the cache that it came from is another one now, or gone. */
export function withoutVia(shard: ShardState): ShardState {
  return { ...shard, via: undefined };
}
