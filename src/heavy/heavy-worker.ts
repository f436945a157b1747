/** What the heavy thread runs: one task after another, pure work on bytes. */
import { move } from 'piscina';
import type { Refusal } from '../domain/errors.js';
import type { HeavyTask } from '../domain/heavy-task.js';
import { performTask } from './perform-task.js';

/**
 * What returns to the serving thread: the result, or the reason why there is none. Only a result
 * that owns its whole buffer is moved; any other is copied first. A short Buffer is a view of a
 * pool that Node shares, which later versions refuse to move. `slice` of a Buffer is only another
 * view.
 */
export type Crossing = Uint8Array | boolean | Readonly<{ refusal: Refusal }>;

export function perform(task: HeavyTask): Crossing {
  const done = performTask(task);
  if (done.kind === 'refused') return { refusal: done.refusal };
  const { value } = done;
  if (typeof value === 'boolean') return value;
  const isWhole = value.byteLength === value.buffer.byteLength;
  return move(isWhole ? new Uint8Array(value.buffer) : new Uint8Array(value)) as Uint8Array;
}
