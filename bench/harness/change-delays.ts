/** How long single changes take to a watch of everything in a load process. */
import { setTimeout as sleep } from 'node:timers/promises';
import { wallClock, type WitnessJob } from './jobs.js';
import type { LoadProcess } from './load-process.js';
import { wildcardPath } from './mixed-objects.js';

const pauseMs = 20;
const lateMsMax = 10_000;

/** A change of one object in one round. Its delay counts from the call of `send`. */
export type Change = Readonly<{ index: number; round: number; send: () => Promise<unknown> | void }>;

/** `isWhole`: the watch saw every change once, in the order of sending. */
export type ChangeDelays = Readonly<{ delaysMs: readonly number[]; seen: number; isWhole: boolean }>;

/**
 * Sends the changes one by one, with a pause after each, so that it arrives before the next.
 * `watch` names the server, the shard, and the resourceVersion to watch from.
 */
export async function delaysOf(
  load: LoadProcess,
  watch: Pick<WitnessJob, 'target' | 'shard' | 'resourceVersion'>,
  changes: Iterable<Change>,
): Promise<ChangeDelays> {
  const watching = load.begin('witness', { ...watch, protocol: 'HTTP/1.1', watchers: 1, path: wildcardPath, lateMsMax });
  await watching.ready;
  const sentAt = new Map<string, number>();
  for (const { index, round, send } of changes) {
    sentAt.set(`${index}|${round}`, wallClock());
    await send();
    await sleep(pauseMs);
  }
  watching.send(sentAt.size);
  const { indexes, rounds, seenAt } = await watching.answer;
  const seen = Array.from(indexes, (index, at) => `${index}|${rounds[at]}`);
  return {
    delaysMs: seen.map((change, at) => seenAt[at]! - (sentAt.get(change) ?? Number.NaN)),
    seen: seen.length,
    isWhole: [...sentAt.keys()].join() === seen.join(),
  };
}
