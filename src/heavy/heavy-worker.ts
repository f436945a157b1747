/** What the thread for heavy work runs: one task after another, pure work on bytes. */
import { move } from 'piscina';
import type { Refusal } from '../domain/errors.js';
import type { HeavyTask } from '../domain/heavy-task.js';
import { performTask } from './perform-task.js';

/**
 * What crosses back: the result, or why there is none. Only a buffer of its own is moved instead of copied: a short one is a view of a pool that Node
 * shares out, which later versions refuse to move, and `slice` of a Buffer is another view of it.
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
