/** The code of the heavy thread: one task after another, pure work on bytes. */
import { move } from 'piscina';
import type { Refusal } from '../domain/errors.js';
import type { HeavyTask } from '../domain/heavy-task.js';
import { performTask } from './perform-task.js';

/**
 * The answer to the serving thread: the result, or the refusal. A result that does not own its
 * whole buffer is copied before the move: a short Buffer is a view of Node's shared pool. Later
 * versions of Node refuse to move that pool. `Buffer.slice` would not copy.
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
