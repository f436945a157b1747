/**
 * The guarantees of a watch (design §6), each as a named validator over a recorded history; the idea is etcd's
 * tests/robustness/validate/watch.go. A validator answers every violation it finds and never throws.
 *
 *   G2 ordered    events come in rising revision            G6 resumable   a chain of resumed watches has no gap, no repeat, no 410
 *   G3 unique     no event comes twice                      G7 bookmarks   never overtake an event, and never fall
 *   G4 reliable   nothing between two seen ones is missing  G8 filters     a selector's view = the full stream filtered, flips included
 *   G5 atomic     list at R, then watch from R: the whole story
 *
 * Two kinds of event are outside G2 by their nature: the initial events of a WatchList, which may come in any order
 * (contract R5; G3 and the state they add up to are checked), and *healed deletions* (D4): the DELETED events at the very revision of the annotated bookmark, for what
 * the client may still hold from an older revision. `isHealedDeletion` names these; G2 and G7 exempt nothing else.
 */
import type { Change, History, ObjectKey, Position, SeenEvent, SeenWatch } from './watch-history.js';

export type Guarantee = 'G2' | 'G3' | 'G4' | 'G5' | 'G6' | 'G7' | 'G8';

export type Violation = Readonly<{ guarantee: Guarantee; watch: string; message: string }>;

export const validators: Readonly<Record<Guarantee, (history: History) => readonly Violation[]>> = {
  G2: ({ watches }) => watches.flatMap(ordered),
  G3: ({ watches }) => watches.flatMap(unique),
  G4: (history) => history.watches.filter((watch) => watch.selects === undefined).flatMap((watch) => complete('G4', watch, history)),
  G5: atomic,
  G6: resumable,
  G7: (history) => history.watches.flatMap((watch) => bookmarked(watch, history)),
  G8: (history) => history.watches.filter((watch) => watch.selects !== undefined).flatMap((watch) => complete('G8', watch, history)),
};

/** Every violation of every guarantee, or of the named ones: without a truth only G2, G3 and G7 can be told. */
export function validate(
  history: History,
  guarantees: readonly Guarantee[] = Object.keys(validators) as Guarantee[],
): readonly Violation[] {
  return guarantees.flatMap((guarantee) => validators[guarantee](history));
}

/** A DELETED that heals a client which named an old revision: behind the annotated bookmark, at that bookmark's revision (D4). */
export function isHealedDeletion(watch: Pick<SeenWatch, 'began' | 'events'>, index: number): boolean {
  const event = watch.events[index];
  const end = endOfInitialEvents(watch);
  return (
    watch.began.kind === 'initial' &&
    watch.began.named !== undefined &&
    event?.type === 'DELETED' &&
    end >= 0 &&
    index > end &&
    event.position === watch.events[end]?.position
  );
}

function ordered(watch: SeenWatch): readonly Violation[] {
  const violations: Violation[] = [];
  let last = watch.began.kind === 'behind' ? watch.began.position : (watch.events[endOfInitialEvents(watch)]?.position ?? 0n);
  let before = '';
  for (const event of liveEvents(watch)) {
    if (event.type === 'BOOKMARK') continue;
    const isRepeat = idOf(event) === before;
    if (event.position <= last && !isRepeat) violations.push(violation('G2', watch, `${describe(event)} came behind revision ${last}`));
    last = event.position > last ? event.position : last;
    before = idOf(event);
  }
  return violations;
}

function unique(watch: SeenWatch): readonly Violation[] {
  const seen = new Set<string>();
  return watch.events.flatMap((event, index) => {
    if (!isChange(event)) return [];
    const id = `${isHealedDeletion(watch, index) ? 'healed ' : ''}${event.key}@${event.position}`;
    if (seen.has(id)) return [violation('G3', watch, `${describe(event)} came twice`)];
    seen.add(id);
    return [];
  });
}

/** What was delivered is exactly what the truth says between the watch's begin and the last position it showed. */
function complete(guarantee: 'G4' | 'G8', watch: SeenWatch, { truth }: History): readonly Violation[] {
  const violations: Violation[] = [];
  const end = endOfInitialEvents(watch);
  if (watch.began.kind === 'initial' && end < 0) return violations;
  const from = watch.began.kind === 'behind' ? watch.began.position : watch.events[end]!.position;

  if (watch.began.kind === 'initial') {
    const stated = new Map(watch.events.slice(0, end).map((event) => [event.key, event.position]));
    violations.push(
      ...differences(stateAt(truth, watch, from), stated).map((text) => violation(guarantee, watch, `initial events at ${from}: ${text}`)),
    );
  }

  const live = liveEvents(watch).filter(isChange);
  const upTo = lastPosition(watch, from);
  const wanted = new Map(expectedEvents(truth, watch, { after: from, upTo }).map((event) => [idOf(event), event]));
  const got = new Map(live.map((event) => [idOf(event), event]));
  for (const [id, event] of wanted)
    if (!got.has(id)) violations.push(violation(guarantee, watch, `${describe(event)} is missing between ${from} and ${upTo}`));
  for (const [id, event] of got)
    if (!wanted.has(id)) violations.push(violation(guarantee, watch, `${describe(event)} came, and no such change is known`));
  return violations;
}

/** The list is the state at its revision; with the events of its watch it becomes the state at the last one. */
function atomic(history: History): readonly Violation[] {
  return history.lists.flatMap((list) => {
    const held = new Map(list.entries.map((entry) => [entry.key, entry.position]));
    const found = differences(stateAt(history.truth, list, list.position), held).map((text): Violation => ({
      guarantee: 'G5',
      watch: list.id,
      message: `list at ${list.position}: ${text}`,
    }));
    const watch = history.watches.find((candidate) => candidate.id === list.watchedBy);
    if (watch === undefined) return found;

    const state = new Map(held);
    for (const event of liveEvents(watch).filter(isChange)) {
      if (event.type === 'DELETED') state.delete(event.key);
      else state.set(event.key, event.position);
    }
    const upTo = lastPosition(watch, list.position);
    const after = differences(stateAt(history.truth, watch, upTo), state).map((text) =>
      violation('G5', watch, `list at ${list.position} and the watch up to ${upTo}: ${text}`),
    );
    return [...found, ...after];
  });
}

/** Watches that go on from one another are judged as one. */
function resumable(history: History): readonly Violation[] {
  return history.watches.flatMap((watch) => {
    if (watch.resumes === undefined) return [];
    const gone = watch.events
      .filter((event) => event.type === 'ERROR')
      .map((event) => violation('G6', watch, `ended with an error ${event.code ?? ''} instead of going on`));
    const before = history.watches.find((candidate) => candidate.id === watch.resumes);
    if (before === undefined || watch.began.kind === 'initial')
      return [...gone, violation('G6', watch, `does not go on from ${watch.resumes}`)];

    const joined: SeenWatch = {
      ...before,
      id: watch.id,
      events: [...before.events, ...watch.events.filter((event) => event.type !== 'ERROR')],
    };
    const kind = joined.selects === undefined ? 'G4' : 'G8';
    const broken = [...ordered(joined), ...unique(joined), ...complete(kind, joined, history)];
    return [
      ...gone,
      ...broken.map((found): Violation => ({ ...found, guarantee: 'G6', message: `behind ${before.id}: ${found.message}` })),
    ];
  });
}

function bookmarked(watch: SeenWatch, { truth }: History): readonly Violation[] {
  const violations: Violation[] = [];
  const delivered = new Set<string>();
  const start = watch.began.kind === 'behind' ? watch.began.position : (watch.events[endOfInitialEvents(watch)]?.position ?? 0n);
  let bookmark = 0n;
  for (const [index, event] of watch.events.entries()) {
    if (event.type === 'BOOKMARK') {
      if (event.position === 0n) violations.push(violation('G7', watch, 'a bookmark without a resourceVersion'));
      if (event.position < bookmark) violations.push(violation('G7', watch, `a bookmark fell from ${bookmark} to ${event.position}`));
      const owed = expectedEvents(truth, watch, { after: start, upTo: event.position }).filter((change) => !delivered.has(idOf(change)));
      for (const change of owed) violations.push(violation('G7', watch, `the bookmark at ${event.position} overtook ${describe(change)}`));
      bookmark = event.position;
    } else if (isChange(event)) {
      if (event.position <= bookmark && !isHealedDeletion(watch, index))
        violations.push(violation('G7', watch, `${describe(event)} came behind the bookmark at ${bookmark}`));
      delivered.add(idOf(event));
    }
  }
  return violations;
}

/** The events a watch owes for the changes after < position ≤ upTo: the full stream, filtered, with flips (contract S15). */
function expectedEvents(
  truth: readonly Change[],
  watch: SeenWatch,
  { after, upTo }: Readonly<{ after: Position; upTo: Position }>,
): readonly SeenEvent[] {
  const inView = new Set<ObjectKey>();
  const owed: SeenEvent[] = [];
  for (const change of truth) {
    if (change.position > upTo || !watch.covers(change.key)) continue;
    const was = inView.has(change.key);
    const is = change.kind === 'put' && (watch.selects?.(change) ?? true);
    if (is) inView.add(change.key);
    else inView.delete(change.key);
    if (change.position <= after || (!was && !is)) continue;
    const type = is ? (was ? 'MODIFIED' : 'ADDED') : 'DELETED';
    owed.push({ type, key: change.key, position: change.position, labels: change.labels, initialEventsEnd: false });
  }
  return owed;
}

function stateAt(truth: readonly Change[], covered: Pick<SeenWatch, 'covers' | 'selects'>, at: Position): ReadonlyMap<ObjectKey, Position> {
  const state = new Map<ObjectKey, Position>();
  for (const change of truth) {
    if (change.position > at || !covered.covers(change.key)) continue;
    if (change.kind === 'put' && (covered.selects?.(change) ?? true)) state.set(change.key, change.position);
    else state.delete(change.key);
  }
  return state;
}

function differences(want: ReadonlyMap<ObjectKey, Position>, got: ReadonlyMap<ObjectKey, Position>): readonly string[] {
  const missing = [...want]
    .filter(([key, position]) => got.get(key) !== position)
    .map(([key, position]) => `${key} should be at ${position}, is ${got.get(key) ?? 'absent'}`);
  const extra = [...got.keys()].filter((key) => !want.has(key)).map((key) => `${key} should be absent`);
  return [...missing, ...extra];
}

/** -1 when the watch has no annotated bookmark (yet). */
function endOfInitialEvents(watch: Pick<SeenWatch, 'events'>): number {
  return watch.events.findIndex((event) => event.initialEventsEnd);
}

/** What came behind the initial events, healed deletions left out. A WatchList that never ended its initial events has none. */
function liveEvents(watch: SeenWatch): readonly SeenEvent[] {
  const end = endOfInitialEvents(watch);
  if (watch.began.kind === 'initial' && end < 0) return [];
  return watch.events.filter(
    (event, index) => (watch.began.kind === 'behind' || index > end) && event.type !== 'ERROR' && !isHealedDeletion(watch, index),
  );
}

function lastPosition(watch: SeenWatch, from: Position): Position {
  return liveEvents(watch).reduce((last, event) => (event.position > last ? event.position : last), from);
}

function isChange(event: SeenEvent): boolean {
  return event.type === 'ADDED' || event.type === 'MODIFIED' || event.type === 'DELETED';
}

function idOf(event: SeenEvent): string {
  return `${event.type} ${event.key}@${event.position}`;
}

function describe(event: SeenEvent): string {
  return `${event.type} ${event.key} at ${event.position}`;
}

function violation(guarantee: Guarantee, watch: SeenWatch, message: string): Violation {
  return { guarantee, watch: watch.id, message };
}
