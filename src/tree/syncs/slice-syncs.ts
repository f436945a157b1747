/**
 * All slices on their way over a link: which there are, which are to be synced, and which may be
 * due for their `end`.
 *
 *   the other end takes the shard from here     a slice sync for each slice that the link filter
 *                                               covers or the other end holds
 *   … and is current with the slice             the slice resumes from the link's position;
 *                                               otherwise it is synced
 *   … from elsewhere, or does not know it       no slice sync
 *
 * Y1 A slice that the link filter does not cover any more is synced as empty, so that the other end
 *    removes it.
 *
 * Bound: one slice sync for each slice that crosses, and for each that the other end reports and
 * this cache does not know (NamedSlices).
 */
import { entryOf } from '../../domain/base/entry-of.js';
import type { Clock } from '../../domain/ports.js';
import type { Neighbour } from '../../domain/via.js';
import type { Term } from '../../domain/push.js';
import type { Resource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import type { ShardName } from '../../domain/shard.js';
import { formatSlice, isSameSlice, type Slice } from '../../domain/slice.js';
import { Turns } from '../../domain/base/queues.js';
import type { FrameOf, InventorySlice } from '../../frames/frame.js';
import { ResyncPace } from '../../sender/resync-pace.js';
import type { LinkFilter } from '../filters/link-filter.js';
import type { PublishedState } from '../../domain/published-state.js';
import { SliceSync, type SyncTally } from './slice-sync.js';
import { addToInventory, type PeerInventory } from '../links/inventory.js';
import { ChosenShards } from '../links/chosen-shards.js';
import type { FreshnessChange } from '../links/freshness-changes.js';
import { UnknownSlices } from '../links/unknown-slices.js';
import { WaitingSyncs } from './waiting-syncs.js';

export type SliceSyncsParts = Readonly<{
  known: PublishedState;
  /** As in LinkSenderParts (link-sender.ts). */
  isSynced: (slice: Slice) => boolean;
  canArrive: (slice: Slice) => boolean;
  unknown: (slice: Slice) => void;
  published: () => Revision;
  clock: Clock;
  random: () => number;
  notify: () => void;
}>;

/** The slice was found whole when `from` was published, for the claim of this term. */
type PendingEnd = Readonly<{ sync: SliceSync; term: Term; from: Revision }>;

/**
 * Slices handled in one turn of the event loop. Each takes some tens of microseconds the first
 * time.
 */
export const slicesPerTurn = 192;
/** Slices that one turn of the event loop checks for whether their `end` may be sent. */
const duePerTurn = 512;

export class SliceSyncs {
  readonly #parts: SliceSyncsParts;
  readonly #taken: ChosenShards;
  /** Slows down the resyncs of a shard: the other end may choose the shard as often as it likes. */
  readonly #paces = new Map<ShardName, ResyncPace>();
  readonly #byShard = new Map<ShardName, Map<string, SliceSync>>();
  /**
   * The other end's inventory. A slice leaves it when it gets a slice sync, or when the other end
   * chooses another via.
   */
  readonly #held: Map<ShardName, Map<string, InventorySlice>>;
  readonly #unknown: UnknownSlices;
  /** For each shard: whether a plain writer's objects counted as synced at the last check. */
  readonly #plainSynced = new Map<ShardName, boolean>();
  readonly #waiting = new WaitingSyncs();
  readonly #due = new Set<SliceSync>();
  /** In the order in which the slices were found whole. */
  readonly #ending = new Turns<PendingEnd>();
  readonly #invalidations = new Set<SliceSync>();
  /**
   * How many slices there are, how many are current at the other end, and of how many the other end
   * refused something.
   */
  readonly tally: SyncTally = { slices: 0, current: 0, refused: 0 };
  /**
   * New slices, and slices whose freshness may have changed. The reader removes each slice that it
   * checks.
   */
  readonly marked = new Set<SliceSync>();
  /**
   * True only while the link opens. Later the link's position has passed changes of slices that had
   * no slice sync yet.
   */
  #canResume: boolean;
  #isOpen = false;
  /** The result of the last look-up, as long as it is in `#byShard`. */
  #last: SliceSync | undefined;
  #filter: LinkFilter;

  constructor(
    parts: SliceSyncsParts,
    { to, filter, held, canResume }: Readonly<{ to: Neighbour; filter: LinkFilter; held: PeerInventory; canResume: boolean }>,
  ) {
    this.#parts = parts;
    this.#unknown = new UnknownSlices(parts.unknown);
    this.#held = held.byShard;
    this.#taken = new ChosenShards(parts.known, to, this.#held.keys());
    this.#filter = filter;
    this.#canResume = canResume;
  }

  /**
   * Makes a slice sync for each known slice that crosses, over several turns of the event loop. The
   * sender sends nothing before that.
   */
  async open(turn: () => Promise<void>): Promise<void> {
    await this.#followInTurns(this.#shards(), turn);
    this.#canResume = false;
    this.#isOpen = true;
  }

  /** The other end holds these slices. Returns false if too many of them are unknown here. */
  receiveInventory(held: readonly InventorySlice[]): boolean {
    for (const each of held) {
      addToInventory(this.#held, each);
      if (this.#parts.known.slice(each.slice) === undefined) this.#unknown.add(each.slice);
      this.#follow(each.slice);
    }
    return !this.#unknown.areTooMany;
  }

  /**
   * Slices of the shard that the other end holds and this cache asks about, because it does not
   * know them.
   */
  unknownOf(shard: ShardName): Iterable<Slice> {
    return this.#unknown.requested(shard);
  }

  /**
   * Records the other end's choice of its via for a shard. Resolves with the delay before the
   * shard's slices are resynced; 0 if nothing has to wait.
   */
  async learnChoice(claim: FrameOf<'claim'>, turn: () => Promise<void>): Promise<number> {
    const { shard, isYours } = claim;
    const hadIt = this.#taken.has(shard);
    if (!this.#taken.learnChoice(claim)) return 0;
    await this.#followInTurns([shard], turn);
    if (!isYours) this.#held.delete(shard);
    if (hadIt || !this.#taken.has(shard)) return 0;
    const pace = this.#paces.get(shard) ?? new ResyncPace(this.#parts);
    this.#paces.set(shard, pace);
    const afterMs = pace.wantedMs();
    pace.synced();
    if (afterMs > 0) for (const sync of this.ofShard(shard)) this.makeDue(sync, afterMs);
    return afterMs;
  }

  get filter(): LinkFilter {
    return this.#filter;
  }

  *all(): Iterable<SliceSync> {
    for (const ofShard of this.#byShard.values()) yield* ofShard.values();
  }

  /** Changes usually arrive slice by slice, so the last result is tried first. */
  of(slice: Slice): SliceSync | undefined {
    const last = this.#last;
    if (last !== undefined && isSameSlice(last.slice, slice)) return last;
    return (this.#last = this.#byShard.get(slice.shard)?.get(formatSlice(slice)));
  }

  hasShard(shard: ShardName): boolean {
    return this.#byShard.has(shard);
  }

  countOf(shard: ShardName): number {
    return this.#byShard.get(shard)?.size ?? 0;
  }

  ofShard(shard: ShardName): Iterable<SliceSync> {
    return this.#byShard.get(shard)?.values() ?? [];
  }

  /** Takes the next slice to be synced. Undefined if none may be synced (waiting-syncs.ts). */
  takeWaiting(position: Revision, of?: 'declaring'): SliceSync | undefined {
    const sync = this.#waiting.take(position, of);
    // The sync sends a `begin` of its own.
    if (sync !== undefined) this.#invalidations.delete(sync);
    return sync;
  }

  /**
   * Takes a slice whose `end` may be sent now, with the term of that `end`. When a slice is found
   * whole, its `end` waits until everything published by then is sent. `position`: the link has
   * sent everything up to here.
   */
  takeDue(position: Revision): PendingEnd | undefined {
    let looks = duePerTurn;
    for (const sync of this.#due) {
      if (looks === 0) break;
      looks -= 1;
      this.#due.delete(sync);
      this.#prepareEnd(sync);
    }
    for (looks = duePerTurn; looks > 0; looks -= 1) {
      const { first } = this.#ending;
      if (first === undefined || first.from > position) break;
      this.#ending.next();
      const { sync, term } = first;
      sync.isEnding = false;
      if (this.of(sync.slice) !== sync || !this.#wantsEnd(sync)) continue;
      if (this.#termOf(sync) === term) return first;
      this.#prepareEnd(sync);
    }
    return undefined;
  }

  /** Whether some slices are still to be checked, or may end. */
  hasDue(position: Revision): boolean {
    const { first } = this.#ending;
    return this.#due.size > 0 || (first !== undefined && first.from <= position);
  }

  /**
   * Takes slices that the other end must mark stale before it gets the next position, because the
   * link may have left out changes of them.
   */
  takeStale(max: number): readonly SliceSync[] {
    const taken: SliceSync[] = [];
    for (const sync of this.#invalidations) {
      if (taken.length >= max) break;
      this.#invalidations.delete(sync);
      taken.push(sync);
    }
    return taken;
  }

  mayBeDue(sync: SliceSync): void {
    this.#due.add(sync);
  }

  onFreshnessChange({ shards, slices }: FreshnessChange): void {
    for (const shard of shards) for (const sync of this.ofShard(shard)) this.#changed(sync);
    for (const slice of slices) {
      const sync = this.of(slice);
      if (sync !== undefined) this.#changed(sync);
    }
  }

  /** Makes the slice due for a sync, after a while. */
  makeDue(sync: SliceSync, afterMs = 0): void {
    if (sync.phase === 'current') this.#invalidations.add(sync);
    sync.close();
    sync.step('wanted');
    this.#leaveSets(sync);
    if (afterMs === 0) return this.#wait(sync);
    sync.setTimer(
      this.#parts.clock.after(afterMs, () => {
        this.#wait(sync);
        this.#parts.notify();
      }),
    );
  }

  /**
   * Makes all slices due for a sync, because the log does not reach back to the link's position.
   * The slices need no `begin` now: the sender's empty position makes all of them stale at the
   * other end.
   */
  makeAllDue(): void {
    for (const sync of this.all()) if (!sync.isToBeSynced) this.makeDue(sync);
    this.#invalidations.clear();
  }

  /**
   * Resyncs each slice for which the new filter lets other objects cross. The sender sends nothing
   * before all slices are checked.
   */
  async changeFilter(filter: LinkFilter, turn: () => Promise<void>): Promise<void> {
    this.#filter = filter;
    let looks = 0;
    for (const sync of this.all()) {
      looks += 1;
      if (looks % slicesPerTurn === 0) await turn();
      const hash = filter.hashOf(sync.slice);
      // The shard may have been dropped meanwhile, with its slices.
      if (hash === sync.filterHash || this.of(sync.slice) !== sync) continue;
      sync.filterHash = hash;
      this.makeDue(sync);
      this.marked.add(sync);
    }
    await this.#followInTurns(this.#shards(), turn);
  }

  followShard(shard: ShardName): void {
    for (const _ of this.#followEach(shard));
  }

  followType(resource: Resource): void {
    for (const slice of this.#unknown.ofType(resource)) this.#checkIfUnknown(slice);
  }

  /**
   * The published state of these slices has changed. A plain writer syncs no slices: one change may
   * make all slices of its shard count as synced (store/state.ts).
   */
  followSlices(slices: Iterable<Slice>): void {
    const shards = new Set<ShardName>();
    for (const slice of slices) {
      this.#follow(slice);
      shards.add(slice.shard);
    }
    for (const shard of shards) {
      const isSynced = this.#parts.known.isPlainSynced(shard);
      if (isSynced === (this.#plainSynced.get(shard) ?? false)) continue;
      this.#plainSynced.set(shard, isSynced);
      for (const sync of this.ofShard(shard)) this.#changed(sync);
    }
  }

  close(): void {
    for (const sync of this.all()) sync.leave();
    this.#byShard.clear();
    this.#last = undefined;
    this.marked.clear();
    this.#due.clear();
    this.#waiting.clear();
  }

  *#shards(): Iterable<ShardName> {
    for (const { shard } of this.#parts.known.shards) yield shard;
  }

  async #followInTurns(shards: Iterable<ShardName>, turn: () => Promise<void>): Promise<void> {
    let looks = 0;
    for (const shard of shards) {
      for (const _ of this.#followEach(shard)) {
        looks += 1;
        if (looks % slicesPerTurn === 0) await turn();
      }
    }
  }

  /** Yields after each slice. The shard may be dropped before the next one. */
  *#followEach(shard: ShardName): Iterable<void> {
    if (!this.#taken.has(shard)) return this.#dropShard(shard);
    this.#plainSynced.set(shard, this.#parts.known.isPlainSynced(shard));
    for (const { slice } of this.#parts.known.slicesOf(shard)) yield void this.#find(slice);
    for (const { slice } of this.#held.get(shard)?.values() ?? []) yield void this.#find(slice);
    for (const sync of this.ofShard(shard)) {
      this.#changed(sync);
      yield this.#checkIfUnknown(sync.slice);
    }
  }

  #follow(slice: Slice): void {
    const sync = this.#find(slice);
    if (sync !== undefined) this.#changed(sync);
    this.#checkIfUnknown(slice);
  }

  #find(slice: Slice): SliceSync | undefined {
    return this.of(slice) ?? this.#add(slice);
  }

  /** The slice may have become whole here, or may not be whole any more. */
  #changed(sync: SliceSync): void {
    this.#due.add(sync);
    this.marked.add(sync);
  }

  #checkIfUnknown(slice: Slice): void {
    const { known, canArrive } = this.#parts;
    if (known.slice(slice) !== undefined) return this.#unknown.delete(slice);
    const isTaken = this.of(slice) !== undefined;
    if (isTaken) this.#unknown.add(slice);
    if (isTaken && canArrive(slice)) this.#unknown.want(slice);
    else this.#unknown.withdraw(slice);
  }

  #add(slice: Slice): SliceSync | undefined {
    const { clock, random } = this.#parts;
    if (!this.#taken.has(slice.shard)) return undefined;
    const held = this.#held.get(slice.shard)?.get(formatSlice(slice));
    if (held === undefined && !this.#filter.covers(slice)) return undefined;
    const filterHash = this.#filter.hashOf(slice);
    const isCurrent = this.#canResume && held?.filterHash === filterHash;
    const phase = isCurrent ? 'current' : held === undefined ? 'new' : 'waiting';
    const sync = new SliceSync(slice, { filterHash, phase, pace: new ResyncPace({ clock, random }), tally: this.tally });
    if (isCurrent) sync.endedFor = held.syncedTerm;
    else this.#wait(sync);
    // A link that cannot resume has sent an empty position at its opening, so no slice counts as
    // current there.
    const mayBeCurrent = held !== undefined && held.filterHash !== '' && (this.#canResume || this.#isOpen);
    if (!isCurrent && mayBeCurrent) this.#invalidations.add(sync);
    this.#held.get(slice.shard)?.delete(formatSlice(slice));
    entryOf(this.#byShard, slice.shard, () => new Map<string, SliceSync>()).set(formatSlice(slice), sync);
    return sync;
  }

  #prepareEnd(sync: SliceSync): void {
    if (sync.isEnding || !this.#wantsEnd(sync)) return;
    sync.isEnding = true;
    this.#ending.add({ sync, term: this.#termOf(sync), from: this.#parts.published() });
  }

  #wantsEnd(sync: SliceSync): boolean {
    const isNew = sync.endedFor !== this.#termOf(sync);
    if (sync.phase !== 'sent' && !(sync.phase === 'current' && isNew)) return false;
    // The other end ignores an `end` for another claim than the one it knows.
    return this.#taken.isAgreed(sync.slice.shard) && this.#parts.isSynced(sync.slice);
  }

  #termOf({ slice }: SliceSync): Term {
    return this.#parts.known.shard(slice.shard)?.term ?? 0;
  }

  #wait(sync: SliceSync): void {
    this.#waiting.add(sync, this.#parts.published());
  }

  /**
   * Keeps the inventory of the shard at the other end. The other end may still count these slices
   * as current, and may choose this cache as via again.
   */
  #dropShard(shard: ShardName): void {
    this.#plainSynced.delete(shard);
    const held = this.#held.get(shard) ?? new Map<string, InventorySlice>();
    for (const [name, sync] of this.#byShard.get(shard) ?? []) {
      const { slice, phase, filterHash, endedFor } = sync;
      const mayBeCurrent = phase === 'current' || this.#invalidations.has(sync);
      if (phase !== 'new') held.set(name, { slice, filterHash: mayBeCurrent ? filterHash : '', syncedTerm: endedFor });
      sync.leave();
      this.#leaveSets(sync);
      this.#invalidations.delete(sync);
      // The other end needs one more report. Otherwise it would trust the last report forever if
      // the slice does not come back with its shard.
      if (sync.freshness === '') this.marked.delete(sync);
      else this.marked.add(sync);
      this.#unknown.withdraw(slice);
    }
    if (held.size > 0) this.#held.set(shard, held);
    this.#byShard.delete(shard);
    this.#last = undefined;
  }

  #leaveSets(sync: SliceSync): void {
    this.#due.delete(sync);
    this.#waiting.delete(sync);
  }
}
