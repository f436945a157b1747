/** The one writer of the grammar in frame.ts. What it writes, read-frame.ts reads as the same frame. */
import { unreachable } from '../domain/errors.js';
import type { Slice } from '../domain/slice.js';
import { frameBounds } from './frame-bounds.js';
import { frameNumbers } from './frame-numbers.js';
import type { Credit, Frame, FrameLimits, FrameOf, HeldSlice, PushedKey, PushedObject, SliceFreshness } from './frame.js';
import { pack } from './msgpack.js';

export function writeFrame(frame: Frame): Uint8Array {
  return pack([frameNumbers[frame.kind], ...members(frame)]);
}

function members(frame: Frame): readonly unknown[] {
  switch (frame.kind) {
    case 'hello': {
      const { protocol, role, name, process, term, takesOver } = frame;
      const granted = [orNil(frame.credit, credit), orNil(frame.limits, limits)];
      const sent = [frame.route.map(text), text(frame.agent), ...granted, ...position(frame)];
      return [protocol, role, text(name), text(process), term, takesOver, ...sent];
    }
    case 'welcome': {
      const { protocol, cacheId, epoch, term } = frame;
      return [protocol, text(cacheId), epoch, term, credit(frame.credit), limits(frame.limits)];
    }
    case 'put':
      return [frame.sequence, slice(frame.slice), text(frame.version), objects(frame.objects), ...position(frame)];
    case 'delete':
      return [frame.sequence, slice(frame.slice), keys(frame.keys), ...position(frame)];
    case 'begin':
      return [frame.sequence, slice(frame.slice), text(frame.revision), ...flag(frame.compares)];
    case 'end':
      return end(frame);
    case 'clusterBegin':
    case 'clusterKeep':
      return [frame.sequence, slice(frame.slice), frame.cluster];
    case 'clusterEnd':
      return [frame.sequence, slice(frame.slice), frame.cluster, frame.count];
    case 'resync':
      return [slice(frame.slice), message(frame.reason)];
    case 'progress':
      return [frame.sequence, text(frame.position)];
    case 'claim':
      return claim(frame);
    case 'route':
      return [frame.route.map(text)];
    case 'policy':
      return [text(frame.up), text(frame.down)];
    case 'digest':
      return [frame.sequence, slice(frame.slice), text(frame.value)];
    case 'ack':
      return [frame.sequence, credit(frame.credit), ...position(frame)];
    case 'refuse':
      return [frame.sequence, text(frame.reason), message(frame.message)];
    case 'status':
      return [freshness(frame.freshness), frame.withdrawn.map(slice)];
    case 'heartbeat':
      return [frame.number];
    case 'report':
      return [frame.sequence, freshness(frame.freshness), frame.heartbeat, frame.isAll, frame.isComplete];
    case 'bye':
      return [frame.reason, message(frame.message), frame.retryAfterMs ?? null];
    case 'resume':
      return [text(frame.position), frame.held.map(held), frame.isLast];
    case 'standby':
      return [];
    case 'summary':
      return [slice(frame.slice), frame.sequence, frame.digests];
    case 'types':
      return [frame.slices.map(slice), frame.withdrawn.map(slice), frame.isAll];
    case 'synced':
      return [frame.slices.map(slice)];
    case 'swept':
      return [slice(frame.slice), keys(frame.keys)];
    default:
      return unreachable(frame);
  }
}

function claim({ shard, term, process, removed, origin, path, reached, isYours, held: isHeld }: FrameOf<'claim'>): readonly unknown[] {
  return [shard, term, text(process), removed, text(origin), path.map(text), reached, isYours, isHeld];
}

function end({ sequence, slice: of, revision, count, filterHash, buckets, term }: FrameOf<'end'>): readonly unknown[] {
  const added = term === undefined ? [buckets].filter((each) => each !== undefined) : [buckets ?? null, term];
  return [sequence, slice(of), text(revision), count, text(filterHash), ...added];
}

function slice({ shard, resource }: Slice): readonly string[] {
  return [shard, resource.group, resource.resource, resource.identity];
}

function position({ position: at }: FrameOf<'hello' | 'put' | 'delete' | 'ack'>): readonly string[] {
  return at === undefined ? [] : [text(at)];
}

function flag(value = false): readonly true[] {
  return value ? [true] : [];
}

function held({ slice: of, filterHash, syncedTerm }: HeldSlice): readonly unknown[] {
  return [slice(of), text(filterHash), syncedTerm];
}

function freshness(sent: readonly SliceFreshness[]): readonly unknown[] {
  return sent.map(({ slice: of, connected, synced, lagMs, whole }) => [slice(of), connected, synced, lagMs, whole]);
}

function orNil<T>(value: T | undefined, form: (value: T) => readonly unknown[]): readonly unknown[] | null {
  return value === undefined ? null : form(value);
}

function credit({ mutations, bytes }: Credit): readonly number[] {
  return [mutations, bytes];
}

function limits({ frameBytesMax, frameMutationsMax, bodyBytesMax }: FrameLimits): readonly number[] {
  return [frameBytesMax, frameMutationsMax, bodyBytesMax];
}

function objects(pushed: readonly PushedObject[]): readonly unknown[] {
  const flat: unknown[] = [];
  for (const { cluster, namespace, name, sourceVersion, body } of pushed)
    flat.push(text(cluster), text(namespace), text(name), text(sourceVersion), body ?? null);
  return flat;
}

function keys(pushed: readonly PushedKey[]): readonly unknown[] {
  const flat: unknown[] = [];
  for (const { cluster, namespace, name } of pushed) flat.push(text(cluster), text(namespace), text(name));
  return flat;
}

const loneSurrogate = /\p{Surrogate}/gu;

/** A surrogate without its other half has no UTF-8, and would make the reader refuse the whole frame. */
function text(value: string): string {
  return value.replace(loneSurrogate, '\ufffd');
}

function message(value: string): string {
  return text(value.slice(0, frameBounds.messageCharactersMax));
}
