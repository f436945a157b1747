/** The receiving half of a link to test with: its context, the frames that come to it, and what every step asked for. */
import type { PushOutcome } from '../../src/domain/push.js';
import type { Slice } from '../../src/domain/slice.js';
import type { Frame, FrameOf, PushedObject } from '../../src/frames/frame.js';
import { newLinkReceiver, step } from '../../src/tier/link-receiver-step.js';
import type {
  LinkReceiverContext,
  LinkReceiverEffect,
  LinkReceiverEvent,
  LinkReceiverState,
  LinkWork,
  NumberedFrame,
} from '../../src/tier/link-receiver-state.js';
import { typeOf } from '../intake/a-session.js';
import { aSlice } from '../support/pushes.js';

export const exports = aSlice();
/** Of a type that somebody must declare first. */
export const instances = aSlice({ group: 'machines.svm.io', resource: 'instances', identity: 'A1' });

export function aContext(overrides: Partial<LinkReceiverContext> = {}): LinkReceiverContext {
  return {
    from: 'parent',
    takes: () => true,
    accepts: () => true,
    holds: () => true,
    isHeld: () => false,
    typeOf,
    limits: { frameBytesMax: 1_000_000, frameMutationsMax: 10, bodyBytesMax: 10_000 },
    credit: { mutations: 20, bytes: 20_000 },
    systemClusters: new Set(['system:shard']),
    ...overrides,
  };
}

/** Every type is declared, as if it were one that is built in. */
export const everyType: LinkReceiverContext['typeOf'] = () => typeOf(exports.resource);

export function put(sequence: number, objects: readonly PushedObject[], slice: Slice = exports): FrameOf<'put'> {
  return { kind: 'put', sequence, slice, version: 'v1alpha2', objects };
}

export function remove(sequence: number, names: readonly string[], slice: Slice = exports): FrameOf<'delete'> {
  return { kind: 'delete', sequence, slice, keys: names.map((name) => ({ cluster: 'acme', namespace: '', name })) };
}

export function begin(sequence: number, slice: Slice = exports): FrameOf<'begin'> {
  return { kind: 'begin', sequence, slice, revision: '7' };
}

export function end(sequence: number, count: number, slice: Slice = exports): FrameOf<'end'> {
  return { kind: 'end', sequence, slice, revision: '7', count, filterHash: 'e' };
}

export function digest(sequence: number, slice: Slice = exports): FrameOf<'digest'> {
  return { kind: 'digest', sequence, slice, value: '0' };
}

export function progress(sequence: number): FrameOf<'progress'> {
  return { kind: 'progress', sequence, position: '9' };
}

/** One word or two for each effect: `send ack 3`, `push begin`, `bye protocol`. */
export function textsOf(effects: readonly LinkReceiverEffect[]): readonly string[] {
  return effects.map((effect) => {
    switch (effect.kind) {
      case 'send':
        return `send ${sentText(effect.frame)}`;
      case 'push':
        return ['push', ...effect.work.pushes.map(({ kind }) => kind)].join(' ');
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
  state: LinkReceiverState = newLinkReceiver();
  context: LinkReceiverContext;
  /** Asked for and not settled yet. */
  readonly works: LinkWork[] = [];

  constructor(context: LinkReceiverContext = aContext()) {
    this.context = context;
  }

  /** Answers the effects of this step alone. */
  take(event: LinkReceiverEvent): readonly LinkReceiverEffect[] {
    const { state, effects } = step(this.state, event, this.context);
    this.state = state;
    for (const effect of effects) if (effect.kind === 'push') this.works.push(effect.work);
    return effects;
  }

  frame(...frames: readonly NumberedFrame[]): readonly LinkReceiverEffect[] {
    return frames.flatMap((frame) => this.take({ kind: 'frame', frame }));
  }

  /** The oldest work is decided: each push of it comes to that. */
  settle(outcome: PushOutcome = { kind: 'unchanged' }): readonly LinkReceiverEffect[] {
    const work = this.works.shift();
    if (work === undefined) throw new Error('nothing is under way');
    return this.take({ kind: 'settled', work, outcomes: work.pushes.map(() => outcome) });
  }

  settleAll(): void {
    while (this.works.length > 0) this.settle();
  }
}
