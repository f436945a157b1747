/** What the thread for heavy work runs: one task after another, pure work on bytes. */
import { move } from 'piscina';
import type { Refusal } from '../domain/errors.js';
import { performTask, type HeavyTask } from '../domain/heavy-task.js';

/** What crosses back: the result as it is, for only what stands alone is moved and not copied; or why there is none. */
export type Crossing = Uint8Array | boolean | Readonly<{ refusal: Refusal }>;

export function perform(task: HeavyTask): Crossing {
  const done = performTask(task);
  if (done.kind === 'refused') return { refusal: done.refusal };
  const { value } = done;
  if (typeof value === 'boolean') return value;
  const isWhole = value.byteLength === value.buffer.byteLength;
  return move(isWhole ? new Uint8Array(value.buffer) : value.slice()) as Uint8Array;
}
