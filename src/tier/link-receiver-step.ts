/**
 * The receiving half of a link as a pure step: what the cache at the other end tells goes to the store, in the order it came.
 *
 *   frame               what becomes of it
 *   begin               the slice is being synced: puts are counted; one that compares is answered with a summary of what is held behind it
 *   put, delete         admitted as those of a shard are; of a type that nobody declares: the slice is parked
 *   end                 the count is right: to the store · else: resync, and nothing is removed
 *   … that is held      the slice is stale, and nothing is removed; no digest of it is compared (intake/held-removals.ts)
 *   … of a slice of     to the store, as stale: not all of it is here, and it is asked for anew once it is taken, or at once if it was
 *   which objects were  before that end
 *   refused
 *   … not taken here    puts are refused, everything else is passed over: what is held of it is not the other end's (X5)
 *   progress, digest    to the store, behind everything before them; the position of a put or delete with its mutations
 *   report              holds once everything before it is settled
 *
 * X1 Mutations are numbered without a gap; anything else ends the connection, and the next one goes on from what is durable.
 * X2 A number is acknowledged when everything up to it is durable, refused or passed over. That frees credit; what is durable is told
 *    by the position alone.
 * X3 Whether a shard is this link's is for the store to say, in queue order: what is fenced there was sent before the other end heard
 *    that another neighbour was chosen.
 * X4 A parked slice holds nobody up: it is asked for anew when its type is declared, or with the next connection.
 * X5 What the policy of this end takes nothing of, the other end cannot remove: this end lets go of it by itself when its policy ceases to
 *    take it (uncovered-slices.ts).
 * Bounds: the credit, of what is not settled yet; `slicesMax`. The slices that are in the middle of something are changed in place.
 */
import type { Refusal } from '../domain/errors.js';
import type { Push, PushOutcome, Speaker } from '../domain/push.js';
import type { Slice } from '../domain/slice.js';
import { unavailableRetryMs, type ByeReason } from '../frames/bye.js';
import type { FrameOf, PushedKey } from '../frames/frame.js';
import { admitFrame } from '../intake/admit-frame.js';
import { arena } from '../intake/arena.js';
import { creditOf, exceeds } from '../intake/frame-credit.js';
import type {
  LinkReceiverContext,
  LinkReceiverEffect,
  LinkReceiverEvent,
  LinkReceiverState,
  LinkWork,
  NumberedFrame,
} from './link-receiver-state.js';
import { LackingObjects } from '../sender/lacking-objects.js';
import { OpenSlices, type OpenSlice } from './open-slices.js';

type Stepped = Readonly<{ state: LinkReceiverState; effects: readonly LinkReceiverEffect[] }>;

/** Of a connection that begins. */
export function newLinkReceiver(): LinkReceiverState {
  return { next: 1, slices: new OpenSlices(), lacking: new LackingObjects(), unsettled: { mutations: 0, bytes: 0 } };
}

/** In the middle of something at a time, in one connection. */
const slicesMax = 50_000;
/** What the place annotations may add to a body; one that grows more gets a buffer of its own. */
const growthBytesMax = 96;
const taken = 'what was refused of it was taken';
const notTaken: Refusal = { reason: 'Forbidden', message: 'the policy of this cache takes nothing of that slice' };

export function step(state: LinkReceiverState, event: LinkReceiverEvent, context: LinkReceiverContext): Stepped {
  switch (event.kind) {
    case 'frame':
      return takeNumbered(state, event, context);
    case 'settled':
      return settle(state, event, context);
    case 'dropped':
      for (const slice of event.slices) state.slices.set({ slice, phase: 'parked', isAsked: false });
      return askAgain(state, context);
    case 'declared':
      return askAgain(state, context);
  }
}

function takeNumbered(
  state: LinkReceiverState,
  { frame, isHeld = false }: LinkReceiverEvent & { kind: 'frame' },
  context: LinkReceiverContext,
): Stepped {
  const { mutations, bytes } = creditOf(frame);
  if (mutations > context.limits.frameMutationsMax)
    return bye(state, 'protocol', `a frame holds ${mutations} mutations, more than were allowed`);
  if (frame.sequence !== state.next) return bye(state, 'protocol', `${frame.sequence} came where ${state.next} was to come`);
  if (exceeds(state.unsettled, { mutations, bytes }, context.credit))
    return bye(state, 'protocol', 'more was sent than there was credit for');

  const slice = frame.kind === 'progress' || frame.kind === 'report' ? undefined : frame.slice;
  const unsettled = { mutations: state.unsettled.mutations + mutations, bytes: state.unsettled.bytes + bytes };
  const counted: LinkReceiverState = { ...state, next: frame.sequence + mutations, unsettled };
  const work: LinkWork = {
    pushes: [],
    slice,
    last: counted.next - 1,
    mutations,
    bytes,
    compares: frame.kind === 'begin' && frame.compares === true,
  };
  if (frame.kind === 'progress') return push(counted, work, [{ kind: 'reach', neighbour: context.from, position: frame.position }]);
  if (frame.kind === 'report') return push(counted, { ...work, report: frame }, []);
  if (context.typeOf(frame.slice.resource, frame.slice.shard) !== undefined)
    return reaching(takeSlice(counted, frame, { work, isHeld }, context), frame, context);
  if (state.unsettled.mutations > 0) return { state, effects: [{ kind: 'again', frame }] };
  return reaching(park(counted, frame.slice, work, context), frame, context);
}

/** The position that a frame names is reached by the commit that has the frame's own mutations, whatever becomes of them. */
function reaching({ state, effects }: Stepped, frame: NumberedFrame, { from }: LinkReceiverContext): Stepped {
  if ((frame.kind !== 'put' && frame.kind !== 'delete') || frame.position === undefined) return { state, effects };
  const reach: Push = { kind: 'reach', neighbour: from, position: frame.position };
  const reached = (work: LinkWork): LinkReceiverEffect => ({ kind: 'push', work: { ...work, pushes: [...work.pushes, reach] } });
  return { state, effects: effects.map((effect) => (effect.kind === 'push' ? reached(effect.work) : effect)) };
}

/** What is told of a slice whose type is known. */
function takeSlice(
  state: LinkReceiverState,
  frame: Exclude<NumberedFrame, { kind: 'progress' | 'report' }>,
  { work, isHeld }: Readonly<{ work: LinkWork; isHeld: boolean }>,
  context: LinkReceiverContext,
): Stepped {
  const { slice } = frame;
  const by: Speaker = { kind: 'link', neighbour: context.from };
  const known = state.slices.of(slice);
  // What it lets nothing in of it lets nobody remove either.
  if (frame.kind !== 'put' && !context.takes(slice)) {
    state.slices.delete(slice);
    return push(state, work, []);
  }
  if (frame.kind === 'begin') {
    if (known === undefined && state.slices.size >= slicesMax) return bye(state, 'protocol', 'too many slices are being synced');
    state.slices.set({ slice, phase: 'syncing', objects: 0, hasLacked: known?.phase === 'syncing' && known.hasLacked });
    state.lacking.clear(slice);
    return push(state, work, [{ kind: 'begin', slice, by }]);
  }
  if (known?.phase === 'parked') return push(state, work, []);
  switch (frame.kind) {
    case 'end':
      if (isHeld) {
        state.slices.delete(slice);
        return push(state, work, [{ kind: 'invalidate', slice, by }]);
      }
      return end(state, state.lacking.lacks(slice) ? { ...frame, filterHash: '' } : frame, known, { work, by });
    case 'digest':
      if (context.isHeld(slice)) return push(state, work, []);
      return push(state, work, [{ kind: 'compare', slice, by, digest: frame.value }]);
    default:
      return admit(state, frame, known, work, context);
  }
}

function end(
  state: LinkReceiverState,
  { slice, count, filterHash, isSame, term }: FrameOf<'end'>,
  known: OpenSlice | undefined,
  { work, by }: Readonly<{ work: LinkWork; by: Speaker }>,
): Stepped {
  state.slices.delete(slice);
  if (known?.phase === 'syncing' && known.objects !== count) {
    const reason = `${known.objects} objects came of the ${count} that were synced`;
    const { effects } = push(state, work, [{ kind: 'invalidate', slice, by }]);
    return { state, effects: [...effects, resync(slice, reason)] };
  }
  const said = { ...(isSame === true ? { isSame } : {}), ...(term === undefined ? {} : { term }) };
  const { effects } = push(state, work, [{ kind: 'end', slice, by, filterHash, ...said }]);
  // The other end knows what was refused, and not that it was taken since.
  const isMended = known?.phase === 'syncing' && known.hasLacked && !state.lacking.lacks(slice);
  return { state, effects: isMended ? [...effects, resync(slice, taken)] : effects };
}

function admit(
  state: LinkReceiverState,
  frame: FrameOf<'put' | 'delete'>,
  known: OpenSlice | undefined,
  work: LinkWork,
  { from, takes, accepts, typeOf, limits, systemClusters }: LinkReceiverContext,
): Stepped {
  const { slice, sequence } = frame;
  const { shard, resource } = slice;
  const type = typeOf(resource, shard);
  const isPut = frame.kind === 'put';
  if (isPut && known?.phase === 'syncing') state.slices.set({ ...known, objects: known.objects + frame.objects.length });
  if (type === undefined || (isPut && !takes(slice))) {
    const keys = isPut ? frame.objects : frame.keys;
    const effects = keys.flatMap((key, i) => refusal(slice, key, sequence + i, notTaken));
    return { state, effects: [...effects, { kind: 'push', work }] };
  }
  const { pushes, refused } = admitFrame(frame, {
    type,
    resource,
    version: isPut ? frame.version : '',
    shard,
    by: { kind: 'link', neighbour: from },
    bodyBytesMax: limits.bodyBytesMax,
    systemClusters,
    allocate: arena(work.bytes + work.mutations * growthBytesMax),
    accepts,
  });
  const refusals = refused.flatMap((each) => refusal(slice, each.key, each.sequence, each.refusal));
  const lacked = state.lacking.lacks(slice);
  noteTaken(state, frame, new Set(refused.map(({ key }) => key)));
  const lacks = state.lacking.lacks(slice);
  const open = state.slices.of(slice);
  if (open?.phase === 'syncing' && lacks) state.slices.set({ ...open, hasLacked: true });
  if (lacks === lacked || open?.phase === 'syncing') return { state, effects: [...refusals, { kind: 'push', work: { ...work, pushes } }] };
  // It becomes stale with the commit that lacks something; the sync that is asked for ends it as what it is.
  const invalidations: readonly Push[] = lacks ? [{ kind: 'invalidate', slice, by: { kind: 'link', neighbour: from } }] : [];
  const asks = resync(slice, lacks ? 'something of it was refused' : taken);
  return { state, effects: [...refusals, { kind: 'push', work: { ...work, pushes: [...pushes, ...invalidations] } }, asks] };
}

/** An object without its body is too large for this end: what is held of it is not what there is. */
function noteTaken({ lacking }: LinkReceiverState, frame: FrameOf<'put' | 'delete'>, refused: ReadonlySet<PushedKey>): void {
  const bodiless = frame.kind === 'put' ? frame.objects.filter(({ body }) => body === undefined) : [];
  const lacked = new Set<PushedKey>([...refused, ...bodiless]);
  for (const key of frame.kind === 'put' ? frame.objects : frame.keys)
    if (lacked.has(key)) lacking.add(frame.slice, key);
    else lacking.remove(frame.slice, key);
}

function park(state: LinkReceiverState, slice: Slice, work: LinkWork, { from, holds }: LinkReceiverContext): Stepped {
  const known = state.slices.of(slice);
  if (known?.phase === 'parked') {
    if (known.isAsked) state.slices.set({ ...known, isAsked: false });
    return push(state, work, []);
  }
  if (state.slices.size >= slicesMax) return bye(state, 'protocol', 'slices of too many types that are not known here');
  const invalidations: readonly Push[] = holds(slice) ? [{ kind: 'invalidate', slice, by: { kind: 'link', neighbour: from } }] : [];
  state.slices.set({ slice, phase: 'parked', isAsked: false });
  return { state, effects: [{ kind: 'parked', slice }, ...push(state, work, invalidations).effects] };
}

function settle(
  state: LinkReceiverState,
  { work, outcomes }: LinkReceiverEvent & { kind: 'settled' },
  { credit }: LinkReceiverContext,
): Stepped {
  const failed = outcomes.find((outcome) => outcome.kind === 'unavailable');
  if (failed !== undefined) return bye(state, 'unavailable', failed.refusal.message, unavailableRetryMs);
  const { mutations, bytes } = state.unsettled;
  const settled: LinkReceiverState = { ...state, unsettled: { mutations: mutations - work.mutations, bytes: bytes - work.bytes } };
  const ack: LinkReceiverEffect = { kind: 'send', frame: { kind: 'ack', sequence: work.last, credit } };
  const { slice, report } = work;
  if (report !== undefined) return { state: settled, effects: [ack, { kind: 'reported', report }] };
  if (slice === undefined) return { state: settled, effects: [ack] };
  const differs = outcomes.find((outcome) => outcome.kind === 'differs');
  // Whether it was current when they were compared: it may have been ended since, in the same commit.
  if (differs !== undefined)
    return differs.isCurrent
      ? { state: settled, effects: [ack, { kind: 'differs', slice }, resync(slice, 'its digest differs')] }
      : { state: settled, effects: [ack, resync(slice, 'it is not current here')] };
  if (work.compares) return { state: settled, effects: [ack, summaryOf(work, slice, outcomes)] };
  const isUnbegun = outcomes.some(({ kind }) => kind === 'unbegun');
  return { state: settled, effects: isUnbegun ? [ack, resync(slice, 'its sync was interrupted here')] : [ack] };
}

/** What was parked and has a type now. What is still under way is of before: it would be taken for changes of what is not here. */
function askAgain(state: LinkReceiverState, { typeOf }: LinkReceiverContext): Stepped {
  const { slices } = state;
  const known = slices.waiting(({ resource, shard }) => typeOf(resource, shard) !== undefined);
  for (const slice of known) slices.set({ slice, phase: 'parked', isAsked: true });
  return { state, effects: known.map((slice) => resync(slice, 'its type is declared now')) };
}

function push(state: LinkReceiverState, work: LinkWork, pushes: readonly Push[]): Stepped {
  return { state, effects: [{ kind: 'push', work: { ...work, pushes } }] };
}

function resync(slice: Slice, reason: string): LinkReceiverEffect {
  return { kind: 'send', frame: { kind: 'resync', slice, reason } };
}

/** What is held is told to who has the slice alone. */
function summaryOf({ last: sequence }: LinkWork, slice: Slice, outcomes: readonly PushOutcome[]): LinkReceiverEffect {
  const isBegun = outcomes.length > 0 && outcomes.every(({ kind }) => kind === 'unchanged');
  if (isBegun) return { kind: 'summarise', slice, sequence };
  return { kind: 'send', frame: { kind: 'summary', slice, sequence, value: '' } };
}

function refusal(slice: Slice, key: FrameOf<'delete'>['keys'][number], sequence: number, refused: Refusal): readonly LinkReceiverEffect[] {
  const { reason, message } = refused;
  return [
    { kind: 'send', frame: { kind: 'refuse', sequence, reason, message } },
    { kind: 'refused', slice, key, refusal: refused },
  ];
}

function bye(state: LinkReceiverState, reason: ByeReason, message: string, retryAfterMs?: number): Stepped {
  return { state, effects: [{ kind: 'bye', reason, message, retryAfterMs }] };
}
