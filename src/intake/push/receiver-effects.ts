/** The effects that a step returns (receiver-step.ts). */
import { shown } from '../../diagnostics/bounded-log.js';
import type { ShardState } from '../../domain/claim.js';
import { loggedRefusal, type Refusal } from '../../domain/errors.js';
import type { PushOutcome } from '../../domain/push.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import type { Frame, FrameOf, PushedKey } from '../../frames/frame.js';
import type { NumberedFrame, Work } from './receiver-state.js';

export type ReceiverEffect =
  | Readonly<{ kind: 'send'; frame: Frame }>
  | Readonly<{ kind: 'push'; work: Work }>
  /**
   * Undecided work may declare the type of this frame. Step the frame again once that work is
   * decided.
   */
  | Readonly<{ kind: 'again'; frame: NumberedFrame; isRemovalHeld: boolean }>
  /** `key`: undefined if the frame names no keys. */
  | Readonly<{ kind: 'refused'; slice: Slice; key: PushedKey | undefined; refusal: Refusal }>
  | Readonly<{ kind: 'parked'; slice: Slice }>
  /** Send a summary of the slice's stored objects, under the number of its begin. */
  | Readonly<{ kind: 'summarise'; slice: Slice; sequence: number }>
  /** The store has compared the periodic digest of a slice that is current here. */
  | Readonly<{ kind: 'compared'; slice: Slice; isSame: boolean }>
  /** Clients can read here everything that was sent before the report. */
  | Readonly<{ kind: 'reported'; report: FrameOf<'report'> }>
  /** The pusher has lost its shard. */
  | Readonly<{ kind: 'fenced'; holder: ShardState | undefined }>
  | FrameOf<'bye'>;

export function decidedEffects(
  { slice, report, last, pushes, compares }: Work,
  outcomes: readonly PushOutcome[],
): readonly ReceiverEffect[] {
  if (report !== undefined) return [{ kind: 'reported', report }];
  if (slice === undefined) return [];
  const differs = outcomes.find((outcome) => outcome.kind === 'differs');
  // `isCurrent` dates from the comparison. A later `end` in the same commit may have changed it.
  if (differs?.isCurrent === true) return [{ kind: 'compared', slice, isSame: false }, resync(slice, 'the digest of the slice differs')];
  if (differs !== undefined) return [resync(slice, 'the slice is not current here')];
  const isUnchanged = outcomes.every(({ kind }) => kind === 'unchanged');
  if (pushes.some(({ kind }) => kind === 'compare')) return isUnchanged ? [{ kind: 'compared', slice, isSame: true }] : [];
  // A fenced link may not learn the slice's stored objects, so its summary is empty.
  if (compares && pushes.length > 0 && isUnchanged) return [{ kind: 'summarise', slice, sequence: last }];
  if (compares) return [{ kind: 'send', frame: { kind: 'summary', slice, sequence: last, digests: new Uint8Array() } }];
  return outcomes.some(({ kind }) => kind === 'unbegun') ? [resync(slice, 'the sync of the slice was interrupted here')] : [];
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

/** The log fields of a refusal. Never a body. */
export function refusedFields({ slice, key, refusal: why }: ReceiverEffect & { kind: 'refused' }): Readonly<Record<string, unknown>> {
  const place = { cluster: key && shown(key.cluster), namespace: key && shown(key.namespace), name: key && shown(key.name) };
  return { slice: formatSlice(slice), ...place, ...loggedRefusal(why) };
}
