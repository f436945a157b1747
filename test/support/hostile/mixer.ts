/**
 * Runs several bad clients at a time until its signal fires. A seed chooses them and their times;
 * each is anonymous or has the given identity.
 *
 *   lane 0   zeroWindow (anonymous) ──▶ rapidResets (amber) ──▶ …
 *   lane 1   trickles (amber) ──▶ malformed (anonymous) ──▶ …
 *
 * Meanwhile the test that runs it watches an informer, whose store must stay right.
 */
import type { Random } from '../crash/random.js';
import { streamOf } from '../../simulation/seeded-random.js';
import type { As } from '../raw-tls.js';
import { badClients, type BadClient } from './bad-clients.js';

export type MixerOptions = Readonly<{
  host?: string;
  port: number;
  /** The identity of the clients that are not anonymous; null if all are. */
  as: As;
  seed: number;
  lanes?: number;
  send?: (line: string) => void;
}>;

const lanesByDefault = 4;
const turnMsMin = 500;
const turnMsMax = 5_000;

export type Mixed = Readonly<Record<string, number>>;

export async function mix(
  { host = '127.0.0.1', port, as, seed, lanes = lanesByDefault, send = () => {} }: MixerOptions,
  signal: AbortSignal,
): Promise<Mixed> {
  const names = Object.keys(badClients) as (keyof typeof badClients)[];
  const ran: Record<string, number> = {};
  const lane = async (random: Random, number: number): Promise<void> => {
    while (!signal.aborted) {
      const name = names[random.below(names.length)] ?? 'abruptEnds';
      const isNobody = as === null || random.chance(0.5);
      const turnMs = turnMsMin + random.below(turnMsMax - turnMsMin);
      send(`lane ${number}: ${name} as ${isNobody ? 'nobody' : 'a caller'} for ${turnMs} ms`);
      ran[name] = (ran[name] ?? 0) + 1;
      // Not AbortSignal.any: Node 20 collects its signal when only a timeout still refers to it,
      // and the turn would never end.
      const turn = new AbortController();
      const end = (): void => turn.abort();
      const timer = setTimeout(end, turnMs);
      signal.addEventListener('abort', end);
      const badClient: BadClient = badClients[name];
      await badClient({ host, port, as: isNobody ? null : as }, random, turn.signal);
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, number) => lane(streamOf(seed, `lane ${number}`), number)));
  return ran;
}
