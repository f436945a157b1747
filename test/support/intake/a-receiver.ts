/**
 * A receiver to test with: its context, the frames that it receives, their objects, and the effects
 * of every step.
 */
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import type { ClusterName } from '../../../src/domain/cluster.js';
import type { ServedType } from '../../../src/domain/catalogue/catalogue.js';
import type { PushOutcome } from '../../../src/domain/push.js';
import type { Resource } from '../../../src/domain/resource.js';
import type { Slice } from '../../../src/domain/slice.js';
import type { Frame, FrameOf, PushedObject } from '../../../src/frames/frame.js';
import type { ReceiverEffect } from '../../../src/intake/push/receiver-effects.js';
import { newReceiver, step } from '../../../src/intake/push/receiver-step.js';
import type { NumberedFrame, ReceiverContext, ReceiverEvent, ReceiverState, Work } from '../../../src/intake/push/receiver-state.js';
import { anApiExport, shardName } from '../objects.js';

export const apiExports = aSlice('apiexports');
export const schemas = aSlice('apiresourceschemas');
/** A slice of a type that is not built in: a ClusterCachedResource must declare it first. */
export const instances: Slice = {
  shard: shardName('amber'),
  resource: { group: 'machines.svm.io', resource: 'instances', identity: 'A1' },
};

export function aSlice(resource: string, shard = 'amber', identity = ''): Slice {
  return { shard: shardName(shard), resource: { group: 'apis.kcp.io', resource, identity } };
}

/** The context of a link to the parent. */
export function aContext(overrides: Partial<ReceiverContext> = {}): ReceiverContext {
  return {
    by: { kind: 'link', neighbour: 'parent' },
    covers: () => true,
    accepts: () => true,
    holds: () => true,
    hasHeldRemoval: () => false,
    typeOf,
    limits: { frameBytesMax: 1_000_000, frameMutationsMax: 10, bodyBytesMax: 10_000 },
    credit: { mutations: 20, bytes: 20_000 },
    systemClusters: new Set(['system:shard']),
    ...overrides,
  };
}

export function aPusherContext(overrides: Partial<ReceiverContext> = {}): ReceiverContext {
  return aContext({ by: { kind: 'pusher', term: 7 }, ...overrides });
}

export function typeOf({ group, resource, identity }: Resource): ServedType | undefined {
  return kcpTypes.find((type) => type.group === group && type.resource === resource && type.identity === identity);
}

/** Treats every type as declared, as if it were built in. */
export const everyType: ReceiverContext['typeOf'] = () => typeOf(apiExports.resource);

export function pushed(
  name: string,
  { cluster = 'acme', uid = `uid-of-${name}`, body = undefined as object | undefined } = {},
): PushedObject {
  const object = body ?? anApiExport({ name, uid });
  return { cluster, namespace: '', name, sourceVersion: '1', body: new TextEncoder().encode(JSON.stringify(object)) };
}

export function put(sequence: number, objects: readonly PushedObject[], slice: Slice = apiExports): FrameOf<'put'> {
  return { kind: 'put', sequence, slice, version: 'v1alpha2', objects };
}

export function remove(sequence: number, names: readonly string[], slice: Slice = apiExports): FrameOf<'delete'> {
  return { kind: 'delete', sequence, slice, keys: names.map((name) => ({ cluster: 'acme', namespace: '', name })) };
}

export function begin(sequence: number, slice: Slice = apiExports): FrameOf<'begin'> {
  return { kind: 'begin', sequence, slice, revision: '7' };
}

export function end(sequence: number, count: number, slice: Slice = apiExports): FrameOf<'end'> {
  return { kind: 'end', sequence, slice, revision: '7', count, filterHash: 'e' };
}

export function clusterBegin(sequence: number, cluster = 'acme', slice: Slice = apiExports): FrameOf<'clusterBegin'> {
  return { kind: 'clusterBegin', sequence, slice, cluster: cluster as ClusterName };
}

export function clusterKeep(sequence: number, cluster = 'acme', slice: Slice = apiExports): FrameOf<'clusterKeep'> {
  return { kind: 'clusterKeep', sequence, slice, cluster: cluster as ClusterName };
}

export function clusterEnd(sequence: number, count: number, cluster = 'acme', slice: Slice = apiExports): FrameOf<'clusterEnd'> {
  return { kind: 'clusterEnd', sequence, slice, cluster: cluster as ClusterName, count };
}

export function digest(sequence: number, slice: Slice = apiExports): FrameOf<'digest'> {
  return { kind: 'digest', sequence, slice, value: '0' };
}

export function progress(sequence: number): FrameOf<'progress'> {
  return { kind: 'progress', sequence, position: '9' };
}

/** One word or two for each effect: `send ack 3`, `push begin`, `bye protocol`. */
export function textsOf(effects: readonly ReceiverEffect[]): readonly string[] {
  return effects.map((effect) => {
    switch (effect.kind) {
      case 'send':
        return `send ${sentText(effect.frame)}`;
      case 'push':
        return ['push', ...effect.work.pushes.map(({ kind }) => kind)].join(' ');
      case 'compared':
        return effect.isSame ? 'compared' : 'differs';
      case 'bye':
        return `bye ${effect.reason}`;
      default:
        return effect.kind;
    }
  });
}

function sentText(frame: Frame): string {
  return 'sequence' in frame ? `${frame.kind} ${frame.sequence}` : frame.kind;
}

export class SteppedReceiver {
  state: ReceiverState;
  context: ReceiverContext;
  /** Works that the steps requested and the test has not settled. */
  readonly works: Work[] = [];

  constructor(context: ReceiverContext = aContext(), synced: readonly Slice[] = []) {
    this.context = context;
    this.state = newReceiver(synced);
  }

  /** The receiver of a pusher that has synced these slices. */
  static ofPusher(synced: readonly Slice[] = [apiExports], context: ReceiverContext = aPusherContext()): SteppedReceiver {
    return new SteppedReceiver(context, synced);
  }

  /** Returns the effects of this step alone. */
  take(event: ReceiverEvent): readonly ReceiverEffect[] {
    const { state, effects } = step(this.state, event, this.context);
    this.state = state;
    for (const effect of effects) if (effect.kind === 'push') this.works.push(effect.work);
    return effects;
  }

  frame(...frames: readonly NumberedFrame[]): readonly ReceiverEffect[] {
    return frames.flatMap((frame) => this.take({ kind: 'frame', frame }));
  }

  /** Settles the oldest work: each of its pushes gets this outcome. */
  settle(outcome: PushOutcome = { kind: 'unchanged' }): readonly ReceiverEffect[] {
    const work = this.works.shift();
    if (work === undefined) throw new Error('nothing is under way');
    return this.take({ kind: 'decided', work, outcomes: work.pushes.map(() => outcome) });
  }

  settleAll(): void {
    while (this.works.length > 0) this.settle();
  }
}
