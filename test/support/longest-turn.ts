/**
 * Measures the longest turn of a server's event loop while the server works; turn-meter.ts records
 * the turns in the server's process.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { machinePace } from './machine-pace.js';

/** The environment that makes a server record its turns. */
export function meteredEnvironment(folder: string): Readonly<Record<string, string>> {
  const meter = new URL('./turn-meter.js', import.meta.url).href;
  return { NODE_OPTIONS: `--import=${meter}`, TURN_METER_FILE: turnsFile(folder) };
}

/**
 * The longest turn of the round whose longest turn is shortest: what every round has is the work
 * itself, the rest is garbage collection and the machine. A round of at most `enoughMs` is the
 * last. Longer turns are divided by this machine's pace, so they compare with the machine for which
 * bounds are set.
 */
export async function longestTurnMs(
  folder: string,
  { roundsMax, enoughMs, prepare }: Readonly<{ roundsMax: number; enoughMs: number; prepare: () => Promise<unknown> }>,
  work: (round: number) => Promise<unknown>,
): Promise<number> {
  let shortest = Infinity;
  for (let round = 0; round < roundsMax && shortest > enoughMs; round++) {
    await prepare();
    await sleep(20);
    const before = turnsMs(folder).length;
    await work(round);
    await sleep(20);
    const longest = Math.max(0, ...turnsMs(folder).slice(before));
    shortest = Math.min(shortest, longest > enoughMs ? longest / machinePace() : longest);
  }
  return shortest;
}

/** The length of each recorded turn since the server started; short turns are not recorded. */
export function turnsMs(folder: string): readonly number[] {
  const file = turnsFile(folder);
  return existsSync(file) ? readFileSync(file, 'latin1').split('\n').filter(Boolean).map(Number) : [];
}

function turnsFile(folder: string): string {
  return join(folder, 'turns');
}
