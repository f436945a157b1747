/**
 * Decides each mutation and push, without a store. An engine reads the facts in queue order, calls
 * these functions, and writes the result.
 *
 *   put, delete   Refused if the shard's origin is another cache, unless the mutation `takes` it.
 *                 A shard that is not local becomes local and plain, with the next term.
 *                 In a shard that is not plain, a write makes the slice unsynced. A write of the
 *                 shard itself, or of kept names only (domain/kept-names.ts), does not.
 *   speaker       A pusher speaks for a local shard that has the pusher's term. A link speaks for a
 *                 shard whose via is the link's neighbour. Every other speaker is fenced.
 *   begin         The slice is unsynced until its `end`. A `begin` of one logical cluster
 *                 does not unsync the slice.
 *   upsert        An equal body confirms the object. Any other body is written, and `cameOver`
 *                 becomes the speaker's link.
 *   invalidate    The slice is unsynced, and its syncs under way are void.
 *   end           The slice is synced once every object that was not sent is removed. Without a
 *                 `begin`, it is synced only if it is current under the same link filter.
 *   claim         See `decideClaim` (domain/claim.ts).
 *   acquire       See `arrived` (domain/claim.ts).
 *   meet          If the other end is another cache than before, no slice that came over the link
 *                 is current. If that link leads to the parent, the shards that came over it have
 *                 no via.
 *   reach         If the link cannot resume (position ''), no slice that came over it is current.
 *   leave         The store forgets the link, and the shards that came over it have no via.
 *   clear, drop   The slices count as never synced, and their objects are removed. Objects written
 *                 after the revision `through`, or after the removal began, stay.
 *   assume        The objects of a plain writer count as synced.
 *
 * DC1 When a shard's via changes or ends, none of the shard's slices counts as synced, and its
 *     syncs under way are void.
 */
import assert from 'node:assert/strict';
import { noBuckets } from '../domain/slices/buckets.js';
import { isElsewhere, writtenPlainly, type ShardState } from '../domain/claim.js';
import { decide, type Mutation, type Outcome } from '../domain/mutation.js';
import { linkOf, linksMax, type LinkState, type Push, type PushOutcome, type SliceState, type Speaker } from '../domain/push.js';
import type { Revision } from '../domain/revision.js';
import type { Neighbour } from '../domain/via.js';
import type { Sync } from './syncs.js';

/** The term in which a slice was synced, and the link over which it came. */
export type SliceFacts = Pick<SliceState, 'syncedTerm' | 'everSynced' | 'filterHash' | 'cameOver'>;

type PushOf<Kind extends Push['kind']> = Extract<Push, { kind: Kind }>;
type Refused = Extract<Outcome, { kind: 'refused' }>;

export const neverSynced: SliceFacts = { syncedTerm: 0, everSynced: false, filterHash: '', cameOver: '' };

export function sameFacts(one: SliceFacts, other: SliceFacts): boolean {
  const isSynced = one.syncedTerm === other.syncedTerm && one.everSynced === other.everSynced;
  return isSynced && one.filterHash === other.filterHash && one.cameOver === other.cameOver;
}

/** The slice counts as not synced, and is not current with a link. */
export function unsynced<Facts extends SliceFacts>(facts: Facts): Facts {
  return { ...facts, syncedTerm: 0, filterHash: '' };
}

/** The slice is not current with its link. */
export function stale<Facts extends SliceFacts>(facts: Facts): Facts {
  return { ...facts, filterHash: '' };
}

/** The slice counts as never synced, but keeps the link that brought it. */
export function cleared<Facts extends SliceFacts>(facts: Facts): Facts {
  return { ...facts, ...neverSynced, cameOver: facts.cameOver };
}

/** The plain writes count as synced by this term. */
export function assumed<Facts extends SliceFacts>(facts: Facts, term: ShardState['term']): Facts {
  return { ...facts, syncedTerm: term, everSynced: true, cameOver: '' };
}

/** The facts after the `end` of a sync of the whole slice. */
export function synced({ by, filterHash, term }: PushOf<'end'>, shard: ShardState | undefined): SliceFacts {
  assert(shard !== undefined, 'whoever ends a sync has the shard');
  const cameOver = linkOf(by);
  return { syncedTerm: term ?? shard.term, everSynced: true, filterHash: cameOver === '' ? '' : filterHash, cameOver };
}

/**
 * `shard`: the state of the shard after this write. `isNewState`: the write changes that state.
 * `unsyncs`: the slice counts as not synced afterwards.
 */
type Written = Readonly<{ kind: 'write'; shard: ShardState; isNewState: boolean; unsyncs: boolean }>;

/** `held`: the revision of the stored object. */
export function decideMutation(
  mutation: Mutation,
  { own, known, held }: Readonly<{ own: string; known: ShardState | undefined; held: Revision | undefined }>,
): Refused | Written {
  if (mutation.takes !== true && isElsewhere(known, own)) return { kind: 'refused', why: 'elsewhere' };
  const verdict = decide(mutation, held);
  if (verdict !== 'write') return { kind: 'refused', why: verdict };
  const isLocal = known?.via === 'local';
  const shard = isLocal ? known : writtenPlainly(own, known, mutation.key.shard);
  // A returning pusher must sync a slice that another has written. While a pusher is connected,
  // only the shard may write (intake/writes/plain-writes.ts).
  const unsyncs = mutation.bySource !== true && !keepsNames(mutation) && !shard.plain;
  return { kind: 'write', shard, isNewState: !isLocal, unsyncs };
}

/**
 * Whether the mutation changes kept names only. Such a change says nothing about whether the shard
 * still has the object.
 */
export function keepsNames(mutation: Mutation): boolean {
  return mutation.kind === 'put' && mutation.keeps === true;
}

export function speaksFor(by: Speaker, shard: ShardState): boolean {
  if (by.kind === 'link') return shard.via === by.neighbour;
  return shard.via === 'local' && !shard.removed && shard.term === by.term;
}

/**
 * Whether the neighbour of a link that opens is the `same` cache as before, `another` one, or the
 * `first` one.
 */
export type Meeting = Readonly<{ kind: 'same' | 'first' | 'another' }> | Extract<PushOutcome, { kind: 'bound' | 'full' }>;

/** `nameWith`: returns the name of the child that last used the cache id. */
export function decideMeeting(
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

/**
 * Whether the neighbour's shards lose their via. They do under a new parent, because this cache
 * does not know yet which shards that parent has.
 */
export function voidsShards(neighbour: Neighbour, { kind }: Meeting): boolean {
  return neighbour === 'parent' && kind === 'another';
}

/**
 * What an `end` does. `walk`: removes objects that were not sent. `ended`: has nothing to remove.
 * `synced`: needed no `begin`. `unbegun`: lacks a `begin`.
 *
 * The parameter `resumed` is the number of the walk that an earlier step of this `end` began.
 */
export function decideEnd(
  { by, filterHash, buckets }: PushOf<'end'>,
  { sync, resumed, facts }: Readonly<{ sync: Sync | undefined; resumed: number | undefined; facts: Pick<SliceFacts, 'filterHash'> }>,
): 'walk' | 'ended' | 'synced' | 'unbegun' {
  // Another sync has begun since: its walk has another number, or it has no walk.
  if (sync !== undefined && resumed !== undefined && sync.walk?.number !== resumed) return 'unbegun';
  if (sync !== undefined) return buckets === noBuckets ? 'ended' : 'walk';
  const isCurrent = by.kind === 'link' && filterHash !== '' && facts.filterHash === filterHash;
  return resumed === undefined && isCurrent ? 'synced' : 'unbegun';
}

/** `digest`: the digest of the slice in this store. */
export function compared(
  asked: PushOf<'compare'>,
  digest: string,
  { filterHash }: Pick<SliceFacts, 'filterHash'>,
): Extract<PushOutcome, { kind: 'unchanged' | 'differs' }> {
  return asked.digest === digest ? { kind: 'unchanged' } : { kind: 'differs', digest, isCurrent: filterHash !== '' };
}

export function isAssumable(shard: ShardState | undefined): shard is ShardState {
  return shard?.via === 'local' && shard.plain;
}

/** Whether a `clear` must do nothing, because the shard has been claimed again. */
export function isOvertaken({ onlyRemoved = false }: PushOf<'clear'>, shard: ShardState | undefined): boolean {
  return onlyRemoved && shard?.removed !== true;
}

/** The neighbour that brought the shard is another cache now, or has left. */
export function withoutVia(shard: ShardState): ShardState {
  return { ...shard, via: undefined };
}
