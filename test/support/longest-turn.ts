/** The longest turn that a server's event loop worked while something was done to it, told by turn-meter.ts in the server's process. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** What a server is started with so that its turns are measured. */
export function meteredEnvironment(folder: string): Readonly<Record<string, string>> {
  const meter = new URL('./turn-meter.js', import.meta.url).href;
  return { NODE_OPTIONS: `--import=${meter}`, TURN_METER_FILE: turnsFile(folder) };
}

/**
 * The shortest of the rounds counts: what comes with every round is the work's, the rest is the collector's and the machine's. One that is short
 * enough is the last.
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
    shortest = Math.min(shortest, Math.max(0, ...turnsMs(folder).slice(before)));
  }
  return shortest;
}

/** How long each turn worked that was not short, from the start of the server. */
export function turnsMs(folder: string): readonly number[] {
  const file = turnsFile(folder);
  return existsSync(file) ? readFileSync(file, 'latin1').split('\n').filter(Boolean).map(Number) : [];
}

function turnsFile(folder: string): string {
  return join(folder, 'turns');
}
