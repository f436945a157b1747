/**
 * One pusher's session as a pure step: what came in and what became of it go in; the next state and what is to be done come out.
 *
 *   phase      frame                              decided                   settled
 *   greeting   hello: acquire ▶ coming            –                         –
 *   coming     (none is read)                     welcome ▶ open            –
 *                                                 fenced: bye ▶ ended
 *   open       put delete begin end: push         –                         ack; fenced, unavailable: bye ▶ ended
 *              status: freshness · types: what it names no longer leaves    unbegun: resync
 *              bye ▶ ended; any other: bye ▶ ended
 *
 * J1 Mutations are numbered without a gap. Numbers that came before are passed over; where some are missing, everything this
 *    session speaks of is marked stale and asked for again, and nothing of a stale slice is applied before its `begin`.
 * J2 A number is acknowledged when everything up to it is durable or refused. What is refused touches that mutation alone: of an object
 *    that is refused, the form that is held stays.
 * J3 A session writes for its own shard alone, in the term that it was given; the store fences both once more.
 * J4 `end` with another count than was put asks for the slice again and removes nothing.
 * J5 What this store has acknowledged and lost, because it was rolled back, the pusher resyncs: its last position tells.
 * Bounds: the credit, of what is not settled yet.
 */
import type { ServedType } from '../domain/catalogue.js';
import type { ShardState } from '../domain/claim.js';
import type { Refusal } from '../domain/errors.js';
import type { Push, PushOutcome, Speaker } from '../domain/push.js';
import { formatResource, type Resource } from '../domain/resource.js';
import { parseShardName, type ShardName } from '../domain/shard.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import { unavailableRetryMs, type ByeReason } from '../frames/bye.js';
import { protocolVersion, type Frame, type FrameOf, type PushedKey } from '../frames/frame.js';
import { admitFrame } from './admit-frame.js';
import type { PushInputs } from './admit-push.js';
import { displaced } from './displaced.js';
import { creditOf, exceeds } from './frame-credit.js';
import { arena } from './arena.js';
import type { OpenSession, SessionContext, SessionEffect, SessionEvent, SessionState, SliceProgress, Work } from './session-state.js';

type Stepped = Readonly<{ state: SessionState; effects: readonly SessionEffect[] }>;

export const greeting: SessionState = { phase: 'greeting' };

/** What the place annotations may add to a body; one that grows more gets a buffer of its own. */
const growthBytesMax = 96;

export function step(state: SessionState, event: SessionEvent, context: SessionContext): Stepped {
  switch (state.phase) {
    case 'greeting':
      return event.kind === 'frame' ? greet(event.frame, context) : unchanged(state);
    case 'coming':
      return event.kind === 'decided' ? open(state, event, context) : unchanged(state);
    case 'open':
      if (event.kind === 'frame') return takeFrame(state, event.frame, context);
      if (event.kind === 'dropped') return drop(state, event.resource, context);
      return event.kind === 'settled' ? settle(state, event, context) : unchanged(state);
    case 'ended':
      return unchanged(state);
  }
}

function greet(frame: Frame, { mayWriteFor }: SessionContext): Stepped {
  if (frame.kind !== 'hello') return bye('protocol', `a session begins with hello, not with ${frame.kind}`);
  if (frame.protocol < protocolVersion) return bye('unsupported', `protocol ${frame.protocol} is not spoken here, ${protocolVersion} is`);
  if (frame.role !== 'shard') return bye('unsupported', `the role ${frame.role} is not taken here`);
  const shard = parseShardName(frame.name);
  if (shard === undefined) return bye('protocol', 'hello names no shard');
  if (!mayWriteFor(shard)) return bye('forbidden', `the certificate does not speak for the shard ${shard}`);
  const { process, term, takesOver, position = '' } = frame;
  if (process === '') return bye('protocol', 'hello names no process');
  return {
    state: { phase: 'coming', shard, process },
    effects: [{ kind: 'acquire', shard, process, term, takesOver, position }],
  };
}

function open(
  { shard, process }: SessionState & { phase: 'coming' },
  { outcome, synced, cacheId, epoch }: SessionEvent & { kind: 'decided' },
  { credit, limits }: SessionContext,
): Stepped {
  if (outcome.kind !== 'acquired') return byeTo(outcome, shard, process);
  const { term } = outcome;
  const slices = new Map(synced.map((slice): [string, SliceProgress] => [formatSlice(slice), { slice, phase: 'synced', objects: 0 }]));
  return {
    state: { phase: 'open', shard, process, term, next: 1, slices, unsettled: { mutations: 0, bytes: 0 } },
    effects: [{ kind: 'send', frame: { kind: 'welcome', protocol: protocolVersion, cacheId, epoch, term, synced, credit, limits } }],
  };
}

function takeFrame(state: OpenSession, frame: Frame, context: SessionContext): Stepped {
  switch (frame.kind) {
    case 'put':
    case 'delete':
    case 'begin':
    case 'end':
      return takeMutations(state, frame, context);
    case 'status':
      return { state, effects: [{ kind: 'freshness', freshness: frame.freshness.filter(({ slice }) => slice.shard === state.shard) }] };
    case 'types':
      return nameTypes(state, frame);
    case 'bye':
      return { state: { phase: 'ended' }, effects: [] };
    default:
      return bye('protocol', `${frame.kind} is no frame of a shard’s session`);
  }
}

/** A slice that is named again must be resynced. */
function nameTypes(state: OpenSession, frame: FrameOf<'types'>): Stepped {
  const named = new Set(frame.slices.filter(({ shard }) => shard === state.shard).map(formatSlice));
  const slices = new Map([...state.slices].filter(([name]) => named.has(name)));
  return { state: { ...state, slices }, effects: [{ kind: 'types', named }] };
}

type Mutations = FrameOf<'put' | 'delete' | 'begin' | 'end'>;

function takeMutations(state: OpenSession, frame: Mutations, context: SessionContext): Stepped {
  const { slice, sequence } = frame;
  const { mutations, bytes } = creditOf(frame);
  if (slice.shard !== state.shard) return bye('forbidden', `a session of the shard ${state.shard} says nothing of another`);
  if (mutations > context.limits.frameMutationsMax) return bye('protocol', `a frame holds ${mutations} mutations, more than were allowed`);
  if (sequence + mutations <= state.next) return unchanged(state);
  if (exceeds(state.unsettled, { mutations, bytes }, context.credit)) return bye('protocol', 'more was sent than there was credit for');

  const counted: OpenSession = {
    ...state,
    next: sequence + mutations,
    unsettled: { mutations: state.unsettled.mutations + mutations, bytes: state.unsettled.bytes + bytes },
  };
  const work: Work = { pushes: [], slice, last: counted.next - 1, mutations, bytes };
  const type = context.typeOf(slice.resource, slice.shard);
  if (sequence !== state.next) {
    const spokenOf = [...state.slices.values()].map((each) => each.slice);
    return invalidate(counted, work, type === undefined ? spokenOf : [...spokenOf, slice], 'mutations were lost on the way');
  }
  if (type === undefined && state.unsettled.mutations > 0) return { state, effects: [{ kind: 'again', frame }] };
  if (type === undefined) return refuseAll(counted, frame, work);
  const progress = state.slices.get(formatSlice(slice));
  if (frame.kind === 'begin') return begin(counted, work);
  if (progress === undefined || progress.phase === 'stale') return invalidate(counted, work, [slice], 'it was not synced yet');
  if (frame.kind === 'end') return end(counted, frame, progress, work);
  return admit(counted, frame, { type, progress, work }, context);
}

function begin(state: OpenSession, work: Work): Stepped {
  const { slice } = work;
  const push: Push = { kind: 'begin', slice, by: speakerOf(state) };
  return {
    state: withSlice(state, { slice, phase: 'syncing', objects: 0 }),
    effects: [{ kind: 'push', work: { ...work, pushes: [push] } }],
  };
}

function end(state: OpenSession, { count, slice }: FrameOf<'end'>, progress: SliceProgress, work: Work): Stepped {
  if (progress.phase !== 'syncing') return invalidate(state, work, [slice], 'it ended without having begun');
  if (progress.objects !== count)
    return invalidate(state, work, [slice], `${progress.objects} objects came of the ${count} that were synced`);
  const push: Push = { kind: 'end', slice, by: speakerOf(state), filterHash: '' };
  return {
    state: withSlice(state, { slice, phase: 'synced', objects: 0 }),
    effects: [{ kind: 'push', work: { ...work, pushes: [push] } }],
  };
}

function admit(
  state: OpenSession,
  frame: FrameOf<'put' | 'delete'>,
  { type, progress, work }: Readonly<{ type: ServedType; progress: SliceProgress; work: Work }>,
  { limits, systemClusters }: SessionContext,
): Stepped {
  const { slice } = frame;
  const inputs: PushInputs = {
    type,
    resource: slice.resource,
    version: frame.kind === 'put' ? frame.version : '',
    shard: state.shard,
    by: speakerOf(state),
    bodyBytesMax: limits.bodyBytesMax,
    systemClusters,
    allocate: arena(work.bytes + work.mutations * growthBytesMax),
  };
  const { pushes, refused } = admitFrame(frame, inputs);
  const refusals = refused.flatMap((each) => refusal(slice, each.key, each.sequence, each.refusal));

  const objects = progress.objects + (frame.kind === 'put' ? frame.objects.length : 0);
  const next = progress.phase === 'syncing' ? withSlice(state, { ...progress, objects }) : state;
  return { state: next, effects: [...refusals, { kind: 'push', work: { ...work, pushes } }] };
}

/** The frame itself is not applied: what it says will be synced again. */
function invalidate(state: OpenSession, work: Work, slices: readonly Slice[], reason: string): Stepped {
  const fresh = new Map(
    slices.filter((slice) => state.slices.get(formatSlice(slice))?.phase !== 'stale').map((slice) => [formatSlice(slice), slice]),
  );
  const by = speakerOf(state);
  const pushes = [...fresh.values()].map((slice): Push => ({ kind: 'invalidate', slice, by }));
  const stale = [...fresh].map(([text, slice]): [string, SliceProgress] => [text, { slice, phase: 'stale', objects: 0 }]);
  const next: OpenSession = { ...state, slices: new Map([...state.slices, ...stale]) };
  const requests = [...fresh.values()].map((slice): SessionEffect => ({ kind: 'send', frame: { kind: 'resync', slice, reason } }));
  return { state: next, effects: [...requests, { kind: 'push', work: { ...work, pushes } }] };
}

function refuseAll(state: OpenSession, frame: Mutations, work: Work): Stepped {
  const { slice, sequence } = frame;
  const refused: Refusal = { reason: 'NotFound', message: `the type ${formatResource(slice.resource)} is not served here` };
  const keys = frame.kind === 'put' ? frame.objects : frame.kind === 'delete' ? frame.keys : [undefined];
  const effects = keys.flatMap((key, i) => refusal(slice, key, sequence + i, refused));
  // What is refused here is missing when the type is back, whether or not its objects went meanwhile.
  const isKnown = state.slices.has(formatSlice(slice));
  const pushes: readonly Push[] = isKnown ? [{ kind: 'invalidate', slice, by: speakerOf(state) }] : [];
  return { state: withoutType(state, slice.resource), effects: [...effects, { kind: 'push', work: { ...work, pushes } }] };
}

function refusal(slice: Slice, key: PushedKey | undefined, sequence: number, refused: Refusal): readonly SessionEffect[] {
  const { reason, message } = refused;
  return [
    { kind: 'send', frame: { kind: 'refuse', sequence, reason, message } },
    { kind: 'refused', slice, key, refusal: refused },
  ];
}

function settle(state: OpenSession, { work, outcomes }: SessionEvent & { kind: 'settled' }, { credit }: SessionContext): Stepped {
  const fatal = outcomes.find(({ kind }) => kind === 'fenced' || kind === 'unavailable');
  if (fatal !== undefined) return byeTo(fatal, state.shard, state.process);
  const unsettled = { mutations: state.unsettled.mutations - work.mutations, bytes: state.unsettled.bytes - work.bytes };
  const ack: SessionEffect = { kind: 'send', frame: { kind: 'ack', sequence: work.last, credit } };
  const settled: OpenSession = { ...state, unsettled };
  if (!outcomes.some(({ kind }) => kind === 'unbegun')) return { state: settled, effects: [ack] };
  const { slice } = work;
  return {
    state: withSlice(settled, { slice, phase: 'stale', objects: 0 }),
    effects: [ack, { kind: 'send', frame: { kind: 'resync', slice, reason: 'its sync was interrupted here' } }],
  };
}

function byeTo(outcome: PushOutcome, shard: ShardName, process: string): Stepped {
  switch (outcome.kind) {
    case 'fenced': {
      const { reason, retryAfterMs } = displaced(process, outcome.holder);
      return bye(reason, fencedBy(outcome.holder, shard), retryAfterMs);
    }
    case 'unavailable':
      return bye('unavailable', outcome.refusal.message, unavailableRetryMs);
    default:
      throw new Error(`no session ends as ${outcome.kind}`);
  }
}

function fencedBy(holder: ShardState | undefined, shard: ShardName): string {
  if (holder === undefined) return `nobody has the shard ${shard}`;
  if (holder.removed) return `the shard ${shard} was removed`;
  const where = holder.via === 'local' ? '' : ' at another cache';
  return `the shard ${shard} belongs to the term ${holder.term}${where}`;
}

function speakerOf({ term }: OpenSession): Speaker {
  return { kind: 'pusher', term };
}

function bye(reason: ByeReason, message: string, retryAfterMs?: number): Stepped {
  return { state: { phase: 'ended' }, effects: [{ kind: 'bye', reason, message, retryAfterMs }] };
}

function unchanged(state: SessionState): Stepped {
  return { state, effects: [] };
}

/** What is declared again already is asked for at once, the rest when something of it comes. */
function drop(state: OpenSession, resource: Resource, { typeOf }: SessionContext): Stepped {
  const next = withoutType(state, resource);
  const slice: Slice = { shard: state.shard, resource };
  if (!state.slices.has(formatSlice(slice)) || typeOf(resource, state.shard) === undefined) return { state: next, effects: [] };
  const resync: SessionEffect = { kind: 'send', frame: { kind: 'resync', slice, reason: 'its objects were dropped with their type' } };
  return { state: withSlice(next, { slice, phase: 'stale', objects: 0 }), effects: [resync] };
}

function withoutType(state: OpenSession, resource: Resource): OpenSession {
  const text = formatResource(resource);
  return { ...state, slices: new Map([...state.slices].filter(([, { slice }]) => formatResource(slice.resource) !== text)) };
}

function withSlice(state: OpenSession, progress: SliceProgress): OpenSession {
  return { ...state, slices: new Map(state.slices).set(formatSlice(progress.slice), progress) };
}
