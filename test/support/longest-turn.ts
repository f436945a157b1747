/** The longest turn of a server's event loop while the server gets some work, measured by turn-meter.ts in the server's process. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { machinePace } from './machine-pace.js';

/** Start options that make a server measure its turns. */
export function meteredEnvironment(folder: string): Readonly<Record<string, string>> {
  const meter = new URL('./turn-meter.js', import.meta.url).href;
  return { NODE_OPTIONS: `--import=${meter}`, TURN_METER_FILE: turnsFile(folder) };
}

/**
 * The shortest of the rounds counts: what comes with every round is the work itself, the rest is garbage collection and the machine. A round that is
 * short enough is the last. Each is in milliseconds of the machine for which bounds are set, by the pace of this one in that round.
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

/** The length of each turn that was not short, since the start of the server. */
export function turnsMs(folder: string): readonly number[] {
  const file = turnsFile(folder);
  return existsSync(file) ? readFileSync(file, 'latin1').split('\n').filter(Boolean).map(Number) : [];
}

function turnsFile(folder: string): string {
  return join(folder, 'turns');
}
