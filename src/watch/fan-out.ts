/**
 * Delivers changes to groups of watchers in time slices, because a commit that concerns thousands
 * of selectors takes many turns of the event loop. A group without a selector never waits for one
 * with a selector.
 *
 *   publish ─▶ changes of each place ─▶ due groups ─▶ matched, encoded once a group ─▶ its members
 *
 * W5 A watcher that joins gets everything that is published from then on.
 * W6 A watcher gets the changes in order, each once.
 * W7 A place (the groups of one scope) keeps its changes until its slowest group has them, up to
 *    `waitingMax` and `waitingBytesMax`. Beyond that the slowest groups read the change log.
 * W10 A piece holds whole revisions, because a watcher's position is a revision. In etcd one
 *    revision may have many changes.
 * W11 If a revision has more than `revisionChangesMax` changes or `revisionBytesMax` of new objects
 *    in a place, the place's watchers get 410. If a group's events of a revision, DELETED included,
 *    have more than `revisionBytesMax` of objects, the group's watchers get 410.
 */
import { bytesOf, firstAbove, type Change } from '../domain/change.js';
import { expired, Refused } from '../domain/errors.js';
import type { Key } from '../domain/key.js';
import type { EventItem } from '../domain/ports.js';
import type { Revision } from '../domain/revision.js';
import { isEverything, type Selector } from '../domain/syntax/selector.js';
import { eventOf } from './event-of.js';
import { ScopeIndex, type Group, type ScopeGroups, type View } from './scope-index.js';

export type Piece = Readonly<{ bytes: Uint8Array; events: number; after: Revision; upTo: Revision }>;

/** The revision is too large to be sent (W11). */
export class RevisionTooLarge extends Refused {
  constructor(revision: Revision) {
    super(expired(`too many objects have changed at resource version ${revision}, please list again`));
  }
}

export interface Receiver {
  offer(piece: Piece): void;
  /**
   * The receiver must read everything after `after` from the log: too many changes waited for it,
   * or encoding failed with `fault`.
   */
  fallBack(after: Revision, fault?: unknown): void;
}

/** How many changes one group gets in one visit; a revision is never split. */
const visitChangesMax = 256;
const visitBytesMax = 1024 * 1024;
const waitingMax = 10_000;
const waitingBytesMax = 64 * 1024 * 1024;
/** Limits of one revision (W11). Beyond these limits a new list costs less than the events. */
const revisionChangesMax = 5_000;
const revisionBytesMax = 16 * 1024 * 1024;
const nothing: Uint8Array = new Uint8Array();

export class FanOut<Member extends Receiver> {
  readonly #index = new ScopeIndex<Member>();
  /** Groups with undelivered changes, the longest waiting first. */
  readonly #plain = new Set<Group<Member>>();
  readonly #selective = new Set<Group<Member>>();
  #revision: Revision;

  constructor(revision: Revision) {
    this.#revision = revision;
  }

  get revision(): Revision {
    return this.#revision;
  }

  /** Whether every group has received everything. */
  get isIdle(): boolean {
    return this.#plain.size === 0 && this.#selective.size === 0;
  }

  join(view: View, member: Member): void {
    // Flush before the join: the flush may make the last member leave, which removes the group.
    this.flush(view);
    this.#index.groupOf(view, this.#revision).members.add(member);
  }

  leave(view: View, member: Member): void {
    const group = this.#index.find(view);
    if (group === undefined || !group.members.delete(member) || group.members.size > 0) return;
    this.#settle(group);
    this.#index.remove(group);
  }

  covers(key: Change['key']): boolean {
    return this.#index.covers(key);
  }

  /** Queues the changes up to `revision`, in ascending order; `deliver` delivers them. */
  publish(changes: readonly Change[], revision: Revision): void {
    const places = new Set<ScopeGroups<Member>>();
    for (const change of changes) {
      for (const place of this.#index.covering(change.key)) {
        place.changes.push(change);
        place.bytes += bytesOf(change);
        places.add(place);
      }
    }
    const before = this.#revision;
    this.#revision = revision;
    for (const place of places) {
      for (const group of place.groups.values()) this.#expect(group, before);
      if (place.changes.length > revisionChangesMax || place.bytes > revisionBytesMax) dropTooLarge(place);
      if (place.changes.length > waitingMax || place.bytes > waitingBytesMax) this.#shed(place);
    }
  }

  /**
   * Delivers until the time is up, to at least one group with a selector and one without. Returns
   * true if nothing is left.
   */
  deliver(isTimeUp: () => boolean): boolean {
    for (const due of [this.#plain, this.#selective]) {
      for (const group of due) {
        this.#visit(group);
        if (isTimeUp()) break;
      }
    }
    return this.isIdle;
  }

  /**
   * The revision up to which the members of a view have received everything; undefined if some of
   * their changes were dropped.
   */
  reached(view: View): Revision | undefined {
    const group = this.#index.find(view);
    if (group === undefined || !this.#dueOf(group).has(group)) return this.#revision;
    const { changes, from } = group.place;
    const next = changes[firstAbove(changes, group.after)];
    return group.after < from || next === undefined ? undefined : next.revision - 1;
  }

  /** Delivers everything published to the members of a view. */
  flush(view: View): void {
    const group = this.#index.find(view);
    if (group !== undefined) this.#finish(group);
  }

  /** Sends DELETED for the key to the watchers that cover it, after everything published. */
  reportAbsent(key: Key, resourceVersion: string): void {
    for (const { groups } of this.#index.covering(key)) {
      for (const group of groups.values()) {
        this.#finish(group);
        const bytes = group.representation.forgotten([key], resourceVersion);
        for (const member of group.members) member.offer({ bytes, events: 1, after: this.#revision, upTo: this.#revision });
      }
    }
  }

  #finish(group: Group<Member>): void {
    while (this.#dueOf(group).has(group)) this.#visit(group);
  }

  #visit(group: Group<Member>): void {
    const { place, selector, representation, members } = group;
    const { changes } = place;
    if (group.after < place.from)
      return this.#giveUp(group, group.after, group.after < place.tooLarge ? new RevisionTooLarge(place.tooLarge) : undefined);
    const from = firstAbove(changes, group.after);
    const after = Math.max(group.after, (changes[from]?.revision ?? this.#revision) - 1);
    let events: Events;
    let bytes: Uint8Array;
    try {
      events = eventsFrom(changes, from, selector);
      bytes = events.items.length === 0 ? nothing : representation.events(events.items);
    } catch (fault) {
      // One group's fault must not delay the others: its watchers read the log again, and each
      // meets the fault in its own request.
      return this.#giveUp(group, after, fault);
    }
    const { items, to } = events;
    group.after = to === changes.length ? this.#revision : changes[to - 1]!.revision;
    const piece = { bytes, events: items.length, after, upTo: group.after };
    if (to === changes.length) this.#settle(group);
    else this.#putLast(group);
    if (items.length > 0) for (const member of members) member.offer(piece);
  }

  /** `before`: the revision up to which an idle group has everything. */
  #expect(group: Group<Member>, before: Revision): void {
    const due = this.#dueOf(group);
    if (due.has(group)) return;
    due.add(group);
    group.after = before;
    group.place.due += 1;
  }

  #settle(group: Group<Member>): void {
    if (!this.#dueOf(group).delete(group)) return;
    group.place.due -= 1;
    if (group.place.due === 0) keep(group.place, []);
  }

  /** Puts a group that still has changes to deliver last, so that no other group waits for it. */
  #putLast(group: Group<Member>): void {
    const due = this.#dueOf(group);
    due.delete(group);
    due.add(group);
  }

  #dueOf({ selector }: Group<Member>): Set<Group<Member>> {
    return isEverything(selector) ? this.#plain : this.#selective;
  }

  /**
   * Sends the group's members back to the log, because changes for them were dropped or cannot be
   * encoded.
   */
  #giveUp(group: Group<Member>, after: Revision, fault: unknown): void {
    group.after = this.#revision;
    this.#settle(group);
    for (const member of group.members) member.fallBack(after, fault);
  }

  /**
   * Drops the changes that every group has. If too many are left, also drops the older half; a
   * group that lacks these falls back at its next visit.
   */
  #shed(place: ScopeGroups<Member>): void {
    const waiting = [...place.groups.values()].filter((group) => this.#dueOf(group).has(group));
    keep(place, place.changes.slice(firstAbove(place.changes, Math.min(...waiting.map(({ after }) => after)))));
    if (place.changes.length <= waitingMax / 2 && place.bytes <= waitingBytesMax / 2) return;
    place.from = place.changes[Math.floor(place.changes.length / 2)]?.revision ?? place.from;
    keep(place, place.changes.slice(firstAbove(place.changes, place.from)));
  }
}

type Events = Readonly<{ items: readonly EventItem[]; to: number }>;

/**
 * Events of the changes from index `from` on: as many whole revisions as one visit may deliver.
 * Throws RevisionTooLarge (W11).
 */
function eventsFrom(changes: readonly Change[], from: number, selector: Selector): Events {
  const items: EventItem[] = [];
  let [to, bytes] = [from, 0];
  let ofRevision = { items: 0, bytes: 0 };
  for (let before: Revision | undefined; to < changes.length; to += 1) {
    const change = changes[to]!;
    if (change.revision !== before) {
      if (to - from >= visitChangesMax || bytes >= visitBytesMax) break;
      ofRevision = { items: 0, bytes: 0 };
    }
    before = change.revision;
    const item = eventOf(change, selector);
    if (item === undefined) continue;
    items.push(item);
    const { length } = item.object.body.bytes;
    bytes += length;
    ofRevision.items += 1;
    ofRevision.bytes += length;
    if (ofRevision.items > 1 && ofRevision.bytes > revisionBytesMax) throw new RevisionTooLarge(change.revision);
  }
  return { items, to };
}

/** Drops all changes up to the last revision that is too large, if there is one (W11). */
function dropTooLarge<Member>(place: ScopeGroups<Member>): void {
  let [revision, changes, bytes] = [0, 0, 0];
  for (const change of place.changes) {
    if (change.revision !== revision) [revision, changes, bytes] = [change.revision, 0, 0];
    changes += 1;
    bytes += bytesOf(change);
    if (changes > 1 && (changes > revisionChangesMax || bytes > revisionBytesMax)) place.tooLarge = revision;
  }
  if (place.tooLarge <= place.from) return;
  place.from = place.tooLarge;
  keep(place, place.changes.slice(firstAbove(place.changes, place.from)));
}

function keep<Member>(place: ScopeGroups<Member>, changes: Change[]): void {
  place.changes = changes;
  place.bytes = changes.reduce((sum, change) => sum + bytesOf(change), 0);
}
