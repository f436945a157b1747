/**
 * Decides each frame from a pusher, or from the cache at the other end of a link. Pure: maps a
 * state and an event to the next state and its effects. Frames go to the store in order of arrival.
 *
 *   frame               decision
 *   begin               the receiver counts the slice's puts from here; a begin with `compares`
 *                       is answered with a summary of what the store holds
 *   put, delete         each mutation is admitted or refused by itself
 *   end                 the count is right: goes to the store
 *                       else: the slice becomes stale, a resync is requested, nothing is removed
 *   clusterBegin, -End  the same for one logical cluster of the slice; whether the slice counts as
 *                       synced does not change
 *   clusterKeep         goes to the store as a begin
 *   an end, if held     the slice becomes stale, nothing is removed, and no digest of the slice is
 *                       compared (held-removals.ts)
 *   an end, if objects  goes to the store as stale
 *   were refused
 *   slice not accepted  puts are refused, other frames are dropped (RECEIVE-5)
 *   progress, digest    goes to the store behind everything before it; the position of a put or
 *                       delete goes with its mutations
 *   report              takes effect once everything before it is decided
 *
 * What differs:              a pusher                       a link
 *   a slice without a begin  resync requested, unless its   changes accepted; the store knows
 *                            term synced the slice here     whether the slice is current
 *   a type nobody declares   refused; resync requested      parked: dropped until declared, then
 *                            once declared                  resync requested
 *   a refused object         the pusher's status says so    the slice is stale until accepted
 *   fenced in the store      ends the session               ignored: the other end sent it before
 *                                                           it received the present claim
 *
 * RECEIVE-1 Mutation numbers have no gaps. Any other number ends the connection, and the next
 *   connection continues behind the last durable mutation.
 * RECEIVE-2 A number is acknowledged when everything up to it is durable, refused or dropped. The
 *   ack frees credit.
 * RECEIVE-3 A refusal affects that mutation alone. The cache keeps the last version of the object
 *    that it accepted.
 * RECEIVE-4 A stale slice delays no other slice. Its resync is requested once, when its type is
 *   declared.
 * RECEIVE-5 The other end cannot remove objects of a slice that this end's policy does not accept.
 *   A change of this end's policy removes them (tree/links/uncovered-slices.ts).
 * Bounds: the credit limits undecided frames; `slicesMax`.
 */
import type { Refusal } from '../../domain/errors.js';
import { LackingObjects } from '../../domain/slices/lacking-objects.js';
import type { Push } from '../../domain/push.js';
import { formatResource } from '../../domain/resource.js';
import type { Slice } from '../../domain/slice.js';
import { unavailableRetryMs, type ByeReason } from '../../frames/bye.js';
import type { FrameOf, PushedKey } from '../../frames/frame.js';
import { admitFrame, arena } from './admit-frame.js';
import { creditOf, exceeds } from './frame-parts.js';
import { ReceiverSlices, type ReceiverSlice } from './receiver-slices.js';
import { refusal, resync, decidedEffects, type ReceiverEffect } from './receiver-effects.js';
import type { NumberedFrame, ReceiverContext, ReceiverEvent, ReceiverState, Work } from './receiver-state.js';

type Stepped = Readonly<{ state: ReceiverState; effects: readonly ReceiverEffect[] }>;
type SliceFrame = Exclude<NumberedFrame, { kind: 'progress' | 'report' }>;

/** `synced`: slices that the pusher's term has synced in full here. */
export function newReceiver(synced: readonly Slice[] = []): ReceiverState {
  return { next: 1, slices: new ReceiverSlices(synced), lacking: new LackingObjects(), undecided: { mutations: 0, bytes: 0 } };
}

const slicesMax = 50_000;
/**
 * Bytes that the place annotations may add to a body. A body that grows more gets its own buffer.
 */
const growthBytesMax = 96;
const taken = 'objects of the slice that were refused before are accepted now';
const notTaken: Refusal = { reason: 'Forbidden', message: 'the policy of this cache accepts nothing of that slice' };

export function step(state: ReceiverState, event: ReceiverEvent, context: ReceiverContext): Stepped {
  switch (event.kind) {
    case 'frame':
      return acceptNumbered(state, event, context);
    case 'decided':
      return afterDecision(state, event, context);
    case 'dropped':
      return forgetDropped(state, event.slices, context);
    case 'declared':
      return requestDeclared(state, context);
    case 'named':
      return forget(state, state.slices.keep(event.slices), context);
  }
}

const isPusher = ({ by }: ReceiverContext): boolean => by.kind === 'pusher';

function acceptNumbered(
  state: ReceiverState,
  { frame, isRemovalHeld = false }: ReceiverEvent & { kind: 'frame' },
  context: ReceiverContext,
): Stepped {
  const { mutations, bytes } = creditOf(frame);
  if (mutations > context.limits.frameMutationsMax)
    return bye(state, 'protocol', `a frame has ${mutations} mutations; at most ${context.limits.frameMutationsMax} are allowed`);
  if (frame.sequence !== state.next)
    return bye(state, 'protocol', `the sequence ${frame.sequence} arrived, but ${state.next} was expected`);
  if (exceeds(state.undecided, { mutations, bytes }, context.credit))
    return bye(state, 'protocol', 'the sender sent more than its credit allows');

  const slice = frame.kind === 'progress' || frame.kind === 'report' ? undefined : frame.slice;
  const undecided = { mutations: state.undecided.mutations + mutations, bytes: state.undecided.bytes + bytes };
  const counted: ReceiverState = { ...state, next: frame.sequence + mutations, undecided };
  const compares = frame.kind === 'begin' && frame.compares === true && !isPusher(context);
  const work: Work = { pushes: [], slice, last: counted.next - 1, mutations, bytes, compares };
  if (frame.kind === 'progress') return push(counted, work, reachOf(frame.position, context));
  if (frame.kind === 'report') return push(counted, { ...work, report: frame }, []);
  const isDeclared = context.typeOf(frame.slice.resource, frame.slice.shard) !== undefined;
  if (!isDeclared && state.undecided.mutations > 0) return { state, effects: [{ kind: 'again', frame, isRemovalHeld }] };
  if (isDeclared) return withPosition(acceptSlice(counted, frame, { work, isRemovalHeld }, context), frame, context);
  const stepped = isPusher(context) ? refuseUndeclared(counted, frame, work, context) : parkUndeclared(counted, frame.slice, work, context);
  return withPosition(stepped, frame, context);
}

function reachOf(position: string, { by }: ReceiverContext): readonly Push[] {
  return by.kind === 'link' ? [{ kind: 'reach', neighbour: by.neighbour, position }] : [];
}

/**
 * The commit of a frame's mutations also stores the frame's position, whether or not the mutations
 * were admitted.
 */
function withPosition({ state, effects }: Stepped, frame: SliceFrame, context: ReceiverContext): Stepped {
  if ((frame.kind !== 'put' && frame.kind !== 'delete') || frame.position === undefined) return { state, effects };
  const reach = reachOf(frame.position, context);
  const reached = (work: Work): ReceiverEffect => ({ kind: 'push', work: { ...work, pushes: [...work.pushes, ...reach] } });
  return { state, effects: effects.map((effect) => (effect.kind === 'push' ? reached(effect.work) : effect)) };
}

/** Handles a frame of a slice whose type is declared. */
function acceptSlice(
  state: ReceiverState,
  frame: SliceFrame,
  { work, isRemovalHeld }: Readonly<{ work: Work; isRemovalHeld: boolean }>,
  context: ReceiverContext,
): Stepped {
  const { slice } = frame;
  const { by } = context;
  const known = state.slices.of(slice);
  // The other end may not remove objects of a slice whose puts this end refuses (RECEIVE-5).
  if (frame.kind !== 'put' && !context.covers(slice)) {
    state.slices.delete(slice);
    return push(state, work, []);
  }
  if (frame.kind === 'begin') {
    if (known === undefined && state.slices.size >= slicesMax)
      return bye(state, 'protocol', `the session has more than ${slicesMax} slices`);
    state.slices.begin(slice, known?.phase === 'syncing' && known.hasLacked);
    state.lacking.clear(slice);
    return push(state, work, [{ kind: 'begin', slice, by }]);
  }
  if (known?.phase === 'stale') return drop(state, known, work);
  if (known === undefined && isPusher(context))
    return requestResync(state, slice, { work, reason: 'the slice was not synced yet' }, context);
  switch (frame.kind) {
    case 'end':
      if (!isRemovalHeld) return end(state, frame, { known, work }, context);
      state.slices.delete(slice);
      return push(state, work, [{ kind: 'invalidate', slice, by }]);
    case 'clusterBegin':
    case 'clusterKeep': {
      const opened = state.slices.openCluster(slice, frame);
      if (opened === 'too many') return bye(state, 'protocol', 'the session has too many logical clusters that are being synced or kept');
      return push(state, work, opened === 'open already' ? [] : [{ kind: 'begin', slice, cluster: frame.cluster, by }]);
    }
    case 'clusterEnd':
      return endCluster(state, frame, work, context);
    case 'digest':
      if (context.hasHeldRemoval(slice)) return push(state, work, []);
      return push(state, work, [{ kind: 'compare', slice, by, digest: frame.value }]);
    default:
      return admit(state, frame, work, context);
  }
}

/**
 * Drops a frame of a stale slice. The sender sends such frames until it receives the resync
 * request.
 */
function drop(state: ReceiverState, { slice, isAsked }: ReceiverSlice & { phase: 'stale' }, work: Work): Stepped {
  state.slices.set({ slice, phase: 'stale', isAsked: true });
  const { effects } = push(state, work, []);
  return { state, effects: isAsked ? effects : [...effects, resync(slice, 'the slice is not current here')] };
}

/**
 * Marks the slice stale and requests a resync, because objects are missing here. A link's further
 * changes are still accepted, because the store knows that the slice is stale.
 */
function requestResync(
  state: ReceiverState,
  slice: Slice,
  { work, reason }: Readonly<{ work: Work; reason: string }>,
  context: ReceiverContext,
): Stepped {
  if (isPusher(context)) state.slices.set({ slice, phase: 'stale', isAsked: true });
  else state.slices.delete(slice);
  const { effects } = push(state, work, [{ kind: 'invalidate', slice, by: context.by }]);
  return { state, effects: [...effects, resync(slice, reason)] };
}

function end(
  state: ReceiverState,
  { slice, count, filterHash, buckets, term }: FrameOf<'end'>,
  { known, work }: Readonly<{ known: ReceiverSlice | undefined; work: Work }>,
  context: ReceiverContext,
): Stepped {
  const isBegun = known?.phase === 'syncing';
  if (isBegun && known.objects !== count)
    return requestResync(state, slice, { work, reason: `${known.objects} objects arrived, but the end counts ${count}` }, context);
  if (!isBegun && isPusher(context)) return requestResync(state, slice, { work, reason: 'an end arrived without a begin' }, context);
  const { by } = context;
  if (by.kind === 'pusher') {
    state.slices.set({ slice, phase: 'synced' });
    return push(state, work, [{ kind: 'end', slice, by, filterHash: '' }]);
  }
  state.slices.delete(slice);
  const lacks = state.lacking.lacks(slice);
  const said = { ...(buckets === undefined ? {} : { buckets }), ...(term === undefined ? {} : { term }) };
  const { effects } = push(state, work, [{ kind: 'end', slice, by, filterHash: lacks ? '' : filterHash, ...said }]);
  // The sender knows of the refusals, but not that this end has accepted the objects since. So a
  // resync is requested.
  const isMended = isBegun && known.hasLacked && !lacks;
  return { state, effects: isMended ? [...effects, resync(slice, taken)] : effects };
}

function endCluster(state: ReceiverState, { slice, cluster, count }: FrameOf<'clusterEnd'>, work: Work, context: ReceiverContext): Stepped {
  const objects = state.slices.endCluster(slice, cluster);
  if (objects === count) return push(state, work, [{ kind: 'end', slice, cluster, by: context.by, filterHash: '' }]);
  const reason =
    objects === undefined
      ? 'a clusterEnd arrived without a clusterBegin'
      : `${objects} objects arrived, but the clusterEnd counts ${count}`;
  return requestResync(state, slice, { work, reason: `logical cluster ${cluster}: ${reason}` }, context);
}

function admit(state: ReceiverState, frame: FrameOf<'put' | 'delete'>, work: Work, context: ReceiverContext): Stepped {
  const { by, covers, accepts, typeOf, limits, systemClusters } = context;
  const { slice, sequence } = frame;
  const { shard, resource } = slice;
  const type = typeOf(resource, shard);
  const isPut = frame.kind === 'put';
  if (isPut) state.slices.put(slice, frame.objects);
  if (type === undefined || (isPut && !covers(slice))) {
    const keys = isPut ? frame.objects : frame.keys;
    return { state, effects: [...keys.flatMap((key, i) => refusal(slice, key, sequence + i, notTaken)), { kind: 'push', work }] };
  }
  const { pushes, refused } = admitFrame(frame, {
    type,
    resource,
    version: isPut ? frame.version : '',
    shard,
    by,
    bodyBytesMax: limits.bodyBytesMax,
    systemClusters,
    allocate: arena(work.bytes + work.mutations * growthBytesMax),
    accepts,
  });
  const effects = refused.flatMap((each) => refusal(slice, each.key, each.sequence, each.refusal));
  const change = isPusher(context) ? undefined : trackLacking(state, frame, new Set(refused.map(({ key }) => key)));
  if (change === undefined) return { state, effects: [...effects, { kind: 'push', work: { ...work, pushes } }] };
  // The slice becomes stale in the commit that lacks the object. The `end` of the requested resync
  // decides whether the slice is still stale.
  const invalidations: readonly Push[] = change === 'lacks' ? [{ kind: 'invalidate', slice, by }] : [];
  const asks = resync(slice, change === 'lacks' ? 'an object of the slice was refused' : taken);
  return { state, effects: [...effects, { kind: 'push', work: { ...work, pushes: [...pushes, ...invalidations] } }, asks] };
}

function parkUndeclared(state: ReceiverState, slice: Slice, work: Work, { by, holds }: ReceiverContext): Stepped {
  const known = state.slices.of(slice);
  if (known?.phase === 'stale') {
    if (known.isAsked) state.slices.set({ ...known, isAsked: false });
    return push(state, work, []);
  }
  if (state.slices.size >= slicesMax) return bye(state, 'protocol', `the session has more than ${slicesMax} slices`);
  const invalidations: readonly Push[] = holds(slice) ? [{ kind: 'invalidate', slice, by }] : [];
  state.slices.set({ slice, phase: 'stale', isAsked: false });
  return { state, effects: [{ kind: 'parked', slice }, ...push(state, work, invalidations).effects] };
}

function refuseUndeclared(state: ReceiverState, frame: SliceFrame, work: Work, { by }: ReceiverContext): Stepped {
  const { slice, sequence } = frame;
  const refused: Refusal = { reason: 'NotFound', message: `this cache does not serve the type ${formatResource(slice.resource)}` };
  const keys = frame.kind === 'put' ? frame.objects : frame.kind === 'delete' ? frame.keys : [undefined];
  // The store may keep the slice's objects, but it lacks these changes. So the slice must be
  // resynced once its type is declared again.
  const known = state.slices.of(slice);
  const isNew = frame.kind === 'begin' && state.slices.size < slicesMax;
  if (known !== undefined || isNew) state.slices.set({ slice, phase: 'stale', isAsked: false });
  const { effects } = push(state, work, known === undefined || known.phase === 'stale' ? [] : [{ kind: 'invalidate', slice, by }]);
  return { state, effects: [...keys.flatMap((key, i) => refusal(slice, key, sequence + i, refused)), ...effects] };
}

function afterDecision(state: ReceiverState, { work, outcomes }: ReceiverEvent & { kind: 'decided' }, context: ReceiverContext): Stepped {
  const failed = outcomes.find((outcome) => outcome.kind === 'unavailable');
  if (failed !== undefined) return bye(state, 'unavailable', failed.refusal.message, unavailableRetryMs);
  const fenced = outcomes.find((outcome) => outcome.kind === 'fenced');
  if (fenced !== undefined && isPusher(context)) return { state, effects: [{ kind: 'fenced', holder: fenced.holder }] };
  const { mutations, bytes } = state.undecided;
  const next: ReceiverState = { ...state, undecided: { mutations: mutations - work.mutations, bytes: bytes - work.bytes } };
  const acks: readonly ReceiverEffect[] =
    work.last === 0 ? [] : [{ kind: 'send', frame: { kind: 'ack', sequence: work.last, credit: context.credit } }];
  const { slice } = work;
  const asked = [...acks, ...decidedEffects(work, outcomes)];
  const isUnbegun = outcomes.some(({ kind }) => kind === 'unbegun');
  if (slice === undefined || !isUnbegun || !isPusher(context)) return { state: next, effects: asked };
  state.slices.set({ slice, phase: 'stale', isAsked: true });
  // After a broken sync of one logical cluster, the store still counts the slice as synced;
  // `forget` ends that.
  return { state: next, effects: [...forget(next, [slice], context).effects, ...asked] };
}

/**
 * Requests a resync of the slices whose type is declared by now. Frames sent before the resync stay
 * dropped, because they may change objects that this end lacks.
 */
function requestDeclared(state: ReceiverState, { typeOf }: ReceiverContext): Stepped {
  const known = state.slices.waiting(({ resource, shard }) => typeOf(resource, shard) !== undefined);
  for (const slice of known) state.slices.set({ slice, phase: 'stale', isAsked: true });
  return { state, effects: known.map((slice) => resync(slice, 'the type of the slice is declared now')) };
}

/**
 * The store may count a sync that began after the type was declared again. The store must forget
 * that sync, because this end drops all frames up to the next `begin`.
 */
function forgetDropped(state: ReceiverState, slices: readonly Slice[], context: ReceiverContext): Stepped {
  const lost = slices.filter((slice) => !isPusher(context) || state.slices.of(slice) !== undefined);
  const isBack = ({ resource, shard }: Slice): boolean => context.typeOf(resource, shard) !== undefined;
  const forgotten = forget(
    state,
    lost.filter((slice) => isBack(slice) && state.slices.of(slice)?.phase !== 'stale'),
    context,
  );
  for (const slice of lost) state.slices.set({ slice, phase: 'stale', isAsked: false });
  return { state, effects: [...forgotten.effects, ...requestDeclared(state, context).effects] };
}

function forget(state: ReceiverState, slices: readonly Slice[], { by }: ReceiverContext): Stepped {
  if (slices.length === 0) return { state, effects: [] };
  const pushes = slices.map((slice): Push => ({ kind: 'invalidate', slice, by }));
  return push(state, { pushes, slice: undefined, last: 0, mutations: 0, bytes: 0, compares: false }, pushes);
}

function push(state: ReceiverState, work: Work, pushes: readonly Push[]): Stepped {
  return { state, effects: [{ kind: 'push', work: { ...work, pushes } }] };
}

function bye(state: ReceiverState, reason: ByeReason, message: string, retryAfterMs?: number): Stepped {
  return { state, effects: [{ kind: 'bye', reason, message, retryAfterMs }] };
}

/**
 * Tracks, with every admitted frame, which objects of a link's slices this end lacks because it
 * refused them.
 *
 * Returns 'lacks' when the slice starts to lack objects, 'whole' when it lacks none any more.
 * During a sync it returns undefined, because the `end` decides.
 */
function trackLacking(
  { slices, lacking }: ReceiverState,
  frame: FrameOf<'put' | 'delete'>,
  refused: ReadonlySet<PushedKey>,
): 'lacks' | 'whole' | undefined {
  const { slice } = frame;
  const lacked = lacking.lacks(slice);
  // The sender omits a body that is too large for this end. This end's version of that object may
  // be outdated, so the object counts as missing.
  const bodiless = frame.kind === 'put' ? frame.objects.filter(({ body }) => body === undefined) : [];
  const missing = new Set<PushedKey>([...refused, ...bodiless]);
  for (const key of frame.kind === 'put' ? frame.objects : frame.keys)
    if (missing.has(key)) lacking.add(slice, key);
    else lacking.remove(slice, key);
  const lacks = lacking.lacks(slice);
  const open = slices.of(slice);
  if (open?.phase === 'syncing' && lacks) slices.set({ ...open, hasLacked: true });
  if (lacks === lacked || open?.phase === 'syncing') return undefined;
  return lacks ? 'lacks' : 'whole';
}
