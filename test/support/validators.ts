/**
 * The guarantees (docs/guarantees.md), each as a named validator over a recorded history; the idea
 * is etcd's tests/robustness/validate/watch.go. A validator returns every violation that it finds
 * and never throws.
 *
 *   G1 durable    every acknowledged write is in the truth, in its writer's order, and little else
 *   G2 ordered    events come in rising revision
 *   G3 unique     no event comes twice
 *   G4 reliable   nothing between two seen events is missing
 *   G5 atomic     list at R, then watch from R: the whole story
 *   G6 resumable  a chain of resumed watches has no gap, no repeat, no 410
 *   G7 bookmarks  never overtake an event, and never fall
 *   G8 filters    a selector's view = the full stream filtered, flips included
 *   G9 revisions  never name two things, and never fall from one answer to a later request
 *
 * One transaction in etcd has one revision, whatever it changes. The server sends its events as a
 * whole, unless the connection breaks in the middle. A watch that resumes from such a revision gets
 * all of them again, because its client may have only some.
 *
 * Two kinds of event are exempt from G2. The initial events of a WatchList may come in any order;
 * G3 checks them, and so does the state that they add up to. *Healed deletions* are DELETED events
 * for objects that the client may still hold, at the very revision of the annotated bookmark.
 * `isHealedDeletion` recognises these, and the bare DELETED events for a key that a neighbour has
 * removed and that holds nothing. G2 and G7 exempt nothing else. G4 and G8 check that such a key
 * holds nothing.
 */
import { Truth } from './truth.js';
import type { Acknowledged, Change, History, ObjectKey, Position, SeenEvent, SeenWatch } from './watch-history.js';

export type Guarantee = 'G1' | 'G2' | 'G3' | 'G4' | 'G5' | 'G6' | 'G7' | 'G8' | 'G9';

export type Violation = Readonly<{ guarantee: Guarantee; watch: string; message: string }>;

export const validators: Readonly<Record<Guarantee, (history: History) => readonly Violation[]>> = {
  G1: durable,
  G2: ({ truth, watches }) => {
    const known = new Truth(truth);
    return watches.flatMap((watch) => ordered(watch, known));
  },
  G3: ({ watches }) => watches.flatMap(unique),
  G4: ({ truth, watches }) => allComplete('G4', new Truth(truth), watches),
  G5: atomic,
  G6: resumable,
  G7: ({ truth, watches }) => {
    const known = new Truth(truth);
    return watches.flatMap((watch) => bookmarked(watch, known));
  },
  G8: ({ truth, watches }) => allComplete('G8', new Truth(truth), watches),
  G9: ({ sightings = [] }) => [...named(sightings), ...fallen(sightings)],
};

/**
 * The violations of all guarantees, or of the named ones. Without a truth only G2, G3, G7 and G9
 * can be checked.
 */
export function validate(
  history: History,
  guarantees: readonly Guarantee[] = Object.keys(validators) as Guarantee[],
): readonly Violation[] {
  return guarantees.flatMap((guarantee) => validators[guarantee](history));
}

/**
 * Whether a DELETED heals a client: it is bare, or it follows the annotated bookmark at the same
 * revision, if the client named an old revision.
 */
export function isHealedDeletion(watch: Pick<SeenWatch, 'began' | 'events'>, index: number): boolean {
  return healedDeletions(watch).has(index);
}

function durable({ truth, acknowledged = [], unansweredMax = 0 }: History): readonly Violation[] {
  const violations: Violation[] = [];
  const report = (message: string): void => void violations.push({ guarantee: 'G1', watch: '', message });
  if (acknowledged.length === 0) return violations;
  const { histories } = new Truth(truth);
  const writes = byKey(acknowledged);
  for (const [key, ofKey] of writes) {
    const history = histories.get(key) ?? [];
    let at = 0;
    let unanswered = 0;
    for (const write of ofKey) {
      const found = history.findIndex((change, index) => index >= at && isThe(change, write));
      if (found < 0) {
        report(`lost: ${written(write)}`);
        continue;
      }
      unanswered += found - at;
      at = found + 1;
    }
    unanswered += history.length - at;
    if (unanswered > unansweredMax) report(`${key} has ${unanswered} changes without an answer, at most ${unansweredMax} can be`);
  }
  for (const [key, history] of histories)
    if (!writes.has(key) && history.length > unansweredMax) report(`nobody wrote ${key}, but it has ${history.length} changes`);
  return violations;
}

function ordered(watch: SeenWatch, truth: Truth): readonly Violation[] {
  const violations: Violation[] = [];
  let last = watch.began.kind === 'behind' ? watch.began.position : (watch.events[endOfInitialEvents(watch)]?.position ?? 0n);
  let before = '';
  for (const event of liveEvents(watch)) {
    if (event.type === 'BOOKMARK') continue;
    const isRepeat = idOf(event) === before;
    const isNext = event.position > last || (event.position === last && truth.hasSeveral(watch, last));
    if (!isNext && !isRepeat) violations.push(violation('G2', watch, `${describe(event)} came after revision ${last}`));
    last = event.position > last ? event.position : last;
    before = idOf(event);
  }
  return violations;
}

function unique(watch: SeenWatch): readonly Violation[] {
  const seen = new Set<string>();
  const healed = healedDeletions(watch);
  return watch.events.flatMap((event, index) => {
    // Two neighbours may name the same key.
    if (!isChange(event) || event.bare === true) return [];
    const id = `${healed.has(index) ? 'healed ' : ''}${event.key}@${event.position}`;
    if (seen.has(id)) return [violation('G3', watch, `${describe(event)} came twice`)];
    seen.add(id);
    return [];
  });
}

function allComplete(guarantee: 'G4' | 'G8', truth: Truth, watches: readonly SeenWatch[]): readonly Violation[] {
  return watches
    .filter(({ selects }) => (selects === undefined) === (guarantee === 'G4'))
    .flatMap((watch) => complete(guarantee, watch, truth));
}

/**
 * The delivered events are exactly what the truth has between the watch's beginning and the last
 * position it showed.
 */
function complete(guarantee: 'G4' | 'G8', watch: SeenWatch, truth: Truth): readonly Violation[] {
  const violations: Violation[] = [];
  const report = (message: string): void => void violations.push(violation(guarantee, watch, message));
  const end = endOfInitialEvents(watch);
  if (watch.began.kind === 'initial' && end < 0) return violations;
  const from = watch.began.kind === 'behind' ? beginningOf(watch.began.position, watch, truth) : watch.events[end]!.position;

  if (watch.began.kind === 'initial') {
    const synced = new Map(watch.events.slice(0, end).map((event) => [event.key, event.position]));
    for (const text of differences(truth.stateAt(watch, from), synced)) report(`initial events at ${from}: ${text}`);
  }

  const live = liveEvents(watch).filter(isChange);
  const upTo = lastPosition(watch, from);
  const wanted = new Map(truth.events(watch, from, upTo).map((event) => [idOf(event), event]));
  const got = new Map(live.map((event) => [idOf(event), event]));
  for (const [id, event] of wanted) {
    const seen = got.get(id);
    const mayMiss = watch.isCut === true && event.position === upTo;
    if (seen === undefined) {
      if (!mayMiss) report(`${describe(event)} is missing between ${from} and ${upTo}`);
    }
    // A flip's DELETED carries the object as it was before.
    else if (seen.type !== 'DELETED' && labelsText(seen) !== labelsText(event))
      report(`${describe(event)} has the labels ${labelsText(event)}, came with ${labelsText(seen)}`);
  }
  for (const [id, event] of got) if (!wanted.has(id)) report(`${describe(event)} came, but no such change is known`);
  for (const event of watch.events)
    if (event.bare === true && truth.stateAt(watch, event.position).has(event.key))
      report(`${describe(event)} came bare, but the key holds something`);
  return violations;
}

/**
 * The list is the state at its revision; with the events of its watch it becomes the state at the
 * last one.
 */
function atomic(history: History): readonly Violation[] {
  const truth = new Truth(history.truth);
  const ofLists = history.lists.flatMap((list) => {
    const held = new Map(list.entries.map((entry) => [entry.key, entry.position]));
    const report = (message: string): Violation => ({ guarantee: 'G5', watch: list.id, message });
    const found = differences(truth.stateAt(list, list.position), held).map((text) => report(`list at ${list.position}: ${text}`));
    if (held.size < list.entries.length) found.push(report(`list at ${list.position}: an object comes twice`));
    const watch = history.watches.find((candidate) => candidate.id === list.watchedBy);
    if (watch === undefined) return found;

    const state = new Map(held);
    for (const event of liveEvents(watch).filter(isChange)) {
      if (event.type === 'DELETED') state.delete(event.key);
      else state.set(event.key, event.position);
    }
    const upTo = lastPosition(watch, list.position);
    const after = differences(truth.stateAt(watch, upTo), state).map((text) =>
      violation('G5', watch, `list at ${list.position} and the watch up to ${upTo}: ${text}`),
    );
    return [...found, ...after];
  });
  return [...ofLists, ...history.watches.flatMap((watch) => relisted(watch, truth))];
}

/**
 * A client that named an old revision, and drops nothing on a relist, ends with the present state.
 * It holds objects by its own keys, which have no shard.
 */
function relisted(watch: SeenWatch, truth: Truth): readonly Violation[] {
  const { began, events } = watch;
  if (began.kind !== 'initial' || began.named === undefined || began.isHealed !== true) return [];
  const end = endOfInitialEvents(watch);
  const at = events[end]?.position;
  const isOver = at !== undefined && events.some(({ type, position }, index) => index > end && (type === 'BOOKMARK' || position > at));
  if (!isOver) return [];
  const held = new Set([...truth.stateAt(watch, began.named).keys()].map(clientKey));
  for (const event of events.filter(isChange)) {
    if (event.type === 'DELETED') held.delete(clientKey(event.key));
    else held.add(clientKey(event.key));
  }
  const upTo = lastPosition(watch, at);
  const wanted = new Set([...truth.stateAt(watch, upTo).keys()].map(clientKey));
  const wrong = [
    ...[...held].filter((key) => !wanted.has(key)).map((key) => `${key} is gone, and the client did not receive that`),
    ...[...wanted].filter((key) => !held.has(key)).map((key) => `${key} exists, but was reported as gone`),
  ];
  return wrong.map((text) => violation('G5', watch, `a client that had ${began.named}, at ${upTo}: ${text}`));
}

/** A watch and the one that it resumes are checked as one. */
function resumable(history: History): readonly Violation[] {
  const truth = new Truth(history.truth);
  return history.watches.flatMap((watch) => {
    if (watch.resumes === undefined) return [];
    const gone = watch.events
      .filter((event) => event.type === 'ERROR')
      .map((event) => violation('G6', watch, `ended with an error ${event.code ?? ''} instead of going on`));
    const before = history.watches.find((candidate) => candidate.id === watch.resumes);
    if (before === undefined || watch.began.kind === 'initial')
      return [...gone, violation('G6', watch, `does not go on from ${watch.resumes}`)];

    const known = new Set(before.events.map(idOf));
    const { position } = watch.began;
    const isAgain = (event: SeenEvent): boolean =>
      event.position === position && known.has(idOf(event)) && truth.hasSeveral(watch, position);
    const joined: SeenWatch = {
      ...before,
      id: watch.id,
      events: [...before.events, ...watch.events.filter((event) => !isAgain(event))].filter(({ type }) => type !== 'ERROR'),
      // What the client saw last decides whether it may have a part of a revision.
      isCut: (watch.events.length === 0 ? before : watch).isCut === true,
    };
    const kind = joined.selects === undefined ? 'G4' : 'G8';
    const broken = [...ordered(joined, truth), ...unique(joined), ...complete(kind, joined, truth)];
    return [
      ...gone,
      ...broken.map((found): Violation => ({ ...found, guarantee: 'G6', message: `behind ${before.id}: ${found.message}` })),
    ];
  });
}

function bookmarked(watch: SeenWatch, truth: Truth): readonly Violation[] {
  const violations: Violation[] = [];
  const delivered = new Set<string>();
  const healed = healedDeletions(watch);
  let overtaken = watch.began.kind === 'behind' ? watch.began.position : (watch.events[endOfInitialEvents(watch)]?.position ?? 0n);
  let bookmark = 0n;
  for (const [index, event] of watch.events.entries()) {
    if (event.type === 'BOOKMARK') {
      if (event.position === 0n) violations.push(violation('G7', watch, 'a bookmark without a resourceVersion'));
      if (event.position < bookmark) violations.push(violation('G7', watch, `a bookmark fell from ${bookmark} to ${event.position}`));
      for (const change of truth.events(watch, overtaken, event.position))
        if (!delivered.has(idOf(change)))
          violations.push(violation('G7', watch, `the bookmark at ${event.position} overtook ${describe(change)}`));
      overtaken = event.position > overtaken ? event.position : overtaken;
      bookmark = event.position;
    } else if (isChange(event)) {
      if (event.position <= bookmark && !healed.has(index))
        violations.push(violation('G7', watch, `${describe(event)} came after the bookmark at ${bookmark}`));
      delivered.add(idOf(event));
    }
  }
  return violations;
}

/**
 * A revision names one change for ever: all who saw it, in any life of the server, saw the same
 * change.
 */
function named(sightings: NonNullable<History['sightings']>): readonly Violation[] {
  const first = new Map<Position, string>();
  return sightings.flatMap(({ position, what }) => {
    if (what === undefined) return [];
    const known = first.get(position);
    first.set(position, known ?? what);
    return known === undefined || known === what ? [] : [aboutAll(`${position} was ${known} and then ${what}`)];
  });
}

/** A request that is sent after an answer has come shows nothing older than that answer. */
function fallen(sightings: NonNullable<History['sightings']>): readonly Violation[] {
  const answers = sightings.toSorted((a, b) => a.answeredMs - b.answeredMs);
  const violations: Violation[] = [];
  let highest = 0n;
  let next = 0;
  for (const { position, askedMs } of sightings.toSorted((a, b) => a.askedMs - b.askedMs)) {
    for (; next < answers.length && answers[next]!.answeredMs < askedMs; next += 1)
      if (answers[next]!.position > highest) highest = answers[next]!.position;
    if (position < highest) violations.push(aboutAll(`${position} was shown as the present after ${highest} had been`));
  }
  return violations;
}

function differences(want: ReadonlyMap<ObjectKey, Position>, got: ReadonlyMap<ObjectKey, Position>): readonly string[] {
  const missing = [...want]
    .filter(([key, position]) => got.get(key) !== position)
    .map(([key, position]) => `${key} should be at ${position}, is ${got.get(key) ?? 'absent'}`);
  const extra = [...got.keys()].filter((key) => !want.has(key)).map((key) => `${key} should be absent`);
  return [...missing, ...extra];
}

/** The revision after which a watch that names this one gets everything. */
function beginningOf(named: Position, watch: SeenWatch, truth: Truth): Position {
  return truth.hasSeveral(watch, named) ? named - 1n : named;
}

/** -1 when the watch has no annotated bookmark, or not yet. */
function endOfInitialEvents(watch: Pick<SeenWatch, 'events'>): number {
  return watch.events.findIndex((event) => event.initialEventsEnd);
}

function healedDeletions(watch: Pick<SeenWatch, 'began' | 'events'>): ReadonlySet<number> {
  const { began, events } = watch;
  const end = began.kind === 'initial' && began.named !== undefined ? endOfInitialEvents(watch) : -1;
  const isHealed = ({ type, position, bare }: SeenEvent, index: number): boolean =>
    bare === true || (end >= 0 && index > end && type === 'DELETED' && position === events[end]!.position);
  return new Set(events.flatMap((event, index) => (isHealed(event, index) ? [index] : [])));
}

/**
 * The events after the initial ones, without healed deletions; none if a WatchList never ended its
 * initial events.
 */
function liveEvents(watch: SeenWatch): readonly SeenEvent[] {
  const end = endOfInitialEvents(watch);
  if (watch.began.kind === 'initial' && end < 0) return [];
  const healed = healedDeletions(watch);
  return watch.events.filter(
    (event, index) => (watch.began.kind === 'behind' || index > end) && event.type !== 'ERROR' && !healed.has(index),
  );
}

function lastPosition(watch: SeenWatch, from: Position): Position {
  return liveEvents(watch).reduce((last, event) => (event.position > last ? event.position : last), from);
}

function isChange(event: SeenEvent): boolean {
  return event.type === 'ADDED' || event.type === 'MODIFIED' || event.type === 'DELETED';
}

function isThe(change: Change, write: Acknowledged): boolean {
  if (write.kind === 'delete') return change.kind === 'delete' && change.position > write.behind;
  return change.kind === 'put' && change.labels['turn'] === write.turn && change.position === (write.position ?? change.position);
}

function byKey<T extends { readonly key: ObjectKey }>(all: readonly T[]): ReadonlyMap<ObjectKey, readonly T[]> {
  const groups = new Map<ObjectKey, T[]>();
  for (const each of all) {
    const group = groups.get(each.key);
    if (group === undefined) groups.set(each.key, [each]);
    else group.push(each);
  }
  return groups;
}

/** The key by which kcp's informers hold an object. */
function clientKey(key: ObjectKey): string {
  return key.slice(key.indexOf('|') + 1);
}

function labelsText({ labels }: Pick<SeenEvent, 'labels'>): string {
  return JSON.stringify(Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function idOf(event: SeenEvent): string {
  return `${event.type} ${event.key}@${event.position}`;
}

function describe(event: SeenEvent): string {
  return `${event.type} ${event.key} at ${event.position}`;
}

function written(write: Acknowledged): string {
  return write.kind === 'put'
    ? `${write.turn} of ${write.key} at ${write.position}`
    : `the deletion of ${write.key} behind ${write.behind}`;
}

function aboutAll(message: string): Violation {
  return { guarantee: 'G9', watch: '', message };
}

function violation(guarantee: Guarantee, watch: SeenWatch, message: string): Violation {
  return { guarantee, watch: watch.id, message };
}
