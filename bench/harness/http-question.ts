/**
 * A question that any server of the API can be asked. Its rounds alternate between the targets and take turns in who goes first, so that other
 * load on the machine meets all of them; the bare server is asked in the first round only. A value is the median of its rounds. The two that run
 * on Node get a round before, which is thrown away: V8 compiles what the question needs meanwhile (a get and an update
 * took 170 and 810 µs of processor time in the first round, 120 and 550 in later ones).
 *
 *   thrown away    measured ─ bare │ round 1    measured ─ against ─ bare │ round 2    against ─ measured │ …
 *
 * Another server that fails is not asked that question any more.
 */
import type { CacheTarget } from './cache-target.js';
import type { Protocol } from './client.js';
import type { GoClient } from './go-client.js';
import { mergeRounds, type Sample } from './merge-rounds.js';
import type { Answer, Bench, Question } from './question.js';

export type Asking = Readonly<{
  target: CacheTarget;
  protocol: Protocol;
  http1: boolean;
  client: GoClient;
  objects: number;
  bench: Bench;
}>;

type HttpSpec = Readonly<
  Pick<Question, 'name' | 'family' | 'asks' | 'isLong'> & {
    protocols?: readonly Protocol[];
    /** The bare server cannot answer everything. */
    bare?: false;
    /** Fewer rounds than asked for, because one takes long. */
    roundsMax?: number;
    measure: (asking: Asking) => Promise<Sample>;
  }
>;

const bothProtocols: readonly Protocol[] = ['HTTP/2', 'HTTP/1.1'];

export function httpQuestion({ protocols = bothProtocols, bare, roundsMax = Infinity, measure, ...named }: HttpSpec): Question {
  const roundsOf = (rounds: number): number => Math.min(rounds, roundsMax);
  return {
    ...named,
    needs: ['http'],
    steps: ({ rounds }) => protocols.length * roundsOf(rounds),
    ask: async (bench) => {
      const { http, options, progress } = bench;
      if (http === undefined) throw new Error(`${named.name} needs the Go client`);
      let targets = http.targets.filter(({ role }) => role !== 'bare' || bare === undefined);
      const rounds = roundsOf(options.rounds);
      const answers: Answer[] = [];
      const remarks: string[] = [];
      for (const protocol of protocols) {
        const samples = new Map<CacheTarget, Sample[]>(targets.map((target) => [target, []]));
        for (let round = rounds > 1 ? 0 : 1; round <= rounds; round++) {
          const asked = targets.filter(({ role }) => (round === 0 ? role !== 'against' : role !== 'bare' || round === 1));
          for (const target of round % 2 === 0 ? asked.toReversed() : asked) {
            progress.show(`${named.name} over ${protocol}, ${target.role}, round ${round}`);
            const asking = { target, protocol, http1: protocol === 'HTTP/1.1', client: http.client, objects: options.objects, bench };
            const sample = await measure(asking).catch((error: unknown) => {
              if (target.role === 'measured') throw error;
              remarks.push(`${target.role}, over ${protocol}: ${error instanceof Error ? error.message : String(error)}`);
            });
            if (sample === undefined) targets = targets.filter((other) => other !== target);
            else if (round > 0) samples.get(target)!.push(sample);
          }
          if (round > 0) progress.advance();
        }
        answers.push(mergeRounds(protocol, new Map([...samples].map(([{ role }, some]) => [role, some]))));
      }
      return {
        figures: answers.flatMap(({ figures }) => figures),
        checks: answers.flatMap(({ checks }) => checks),
        remarks: [...remarks, ...answers.flatMap((answer) => answer.remarks ?? [])],
      };
    },
  };
}
