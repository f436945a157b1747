/** What a receiver asks for (receiver-step.ts decides). */
import { shown } from '../diagnostics/shown.js';
import type { ShardState } from '../domain/claim.js';
import { loggedRefusal, type Refusal } from '../domain/errors.js';
import type { PushOutcome } from '../domain/push.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type { Frame, FrameOf, PushedKey } from '../frames/frame.js';
import type { NumberedFrame, Work } from './receiver-state.js';

export type ReceiverEffect =
  | Readonly<{ kind: 'send'; frame: Frame }>
  | Readonly<{ kind: 'push'; work: Work }>
  /** The type of this frame may be declared by what is not settled yet: bring the frame again once it is. */
  | Readonly<{ kind: 'again'; frame: NumberedFrame; isHeld: boolean }>
  /** `key`: undefined of a begin or end. */
  | Readonly<{ kind: 'refused'; slice: Slice; key: PushedKey | undefined; refusal: Refusal }>
  | Readonly<{ kind: 'parked'; slice: Slice }>
  /** What is held of the slice is to be sent, by the number of its begin. */
  | Readonly<{ kind: 'summarise'; slice: Slice; sequence: number }>
  /** The periodic digest of a slice that is current here was compared. */
  | Readonly<{ kind: 'compared'; slice: Slice; isSame: boolean }>
  /** Everything that was sent before it can be read here. */
  | Readonly<{ kind: 'reported'; report: FrameOf<'report'> }>
  /** The pusher has its shard no more. */
  | Readonly<{ kind: 'fenced'; holder: ShardState | undefined }>
  | FrameOf<'bye'>;

/** What follows once the store has decided the work of one frame, besides its acknowledgement. */
export function settledEffects(
  { slice, report, last, pushes, compares }: Work,
  outcomes: readonly PushOutcome[],
): readonly ReceiverEffect[] {
  if (report !== undefined) return [{ kind: 'reported', report }];
  if (slice === undefined) return [];
  const differs = outcomes.find((outcome) => outcome.kind === 'differs');
  // Whether it was current when they were compared: it may have been ended since, in the same commit.
  if (differs?.isCurrent === true) return [{ kind: 'compared', slice, isSame: false }, resync(slice, 'its digest differs')];
  if (differs !== undefined) return [resync(slice, 'it is not current here')];
  const isUnchanged = outcomes.every(({ kind }) => kind === 'unchanged');
  if (pushes.some(({ kind }) => kind === 'compare')) return isUnchanged ? [{ kind: 'compared', slice, isSame: true }] : [];
  // Who has not the slice is not shown what is held of it.
  if (compares && pushes.length > 0 && isUnchanged) return [{ kind: 'summarise', slice, sequence: last }];
  if (compares) return [{ kind: 'send', frame: { kind: 'summary', slice, sequence: last, digests: new Uint8Array() } }];
  return outcomes.some(({ kind }) => kind === 'unbegun') ? [resync(slice, 'its sync was interrupted here')] : [];
}

export function resync(slice: Slice, reason: string): ReceiverEffect {
  return { kind: 'send', frame: { kind: 'resync', slice, reason } };
}

export function refusal(slice: Slice, key: PushedKey | undefined, sequence: number, refused: Refusal): readonly ReceiverEffect[] {
  const { reason, message } = refused;
  return [
    { kind: 'send', frame: { kind: 'refuse', sequence, reason, message } },
    { kind: 'refused', slice, key, refusal: refused },
  ];
}

/** For the log: what and why; never a body. */
export function refusedFields({ slice, key, refusal: why }: ReceiverEffect & { kind: 'refused' }): Readonly<Record<string, unknown>> {
  const place = { cluster: key && shown(key.cluster), namespace: key && shown(key.namespace), name: key && shown(key.name) };
  return { slice: formatSlice(slice), ...place, ...loggedRefusal(why) };
}
