/**
 * A question for any server of the API. In each round every target is asked over each protocol, and
 * another target goes first. Between two rounds the run asks other questions, so that rounds meet
 * different load on the machine. A value is the median of its rounds.
 *
 * Before the first round, the two targets that run on Node are asked once, and the result is
 * dropped. V8 compiles the code for the question meanwhile. A get and an update took 170 and 810 µs
 * of processor time when asked first, 120 and 550 later.
 *
 *   dropped   measured ─ bare
 *   round 1   measured ─ against ─ bare
 *             other questions
 *   round 2   against ─ bare ─ measured
 *   …
 *
 * If another server fails a question, it is not asked that question again.
 */
import type { CacheTarget } from './cache-target.js';
import type { Protocol } from './client.js';
import type { GoClient } from './go-client.js';
import { mergeRounds, type Sample } from './merge-rounds.js';
import type { BenchOptions } from './options.js';
import type { Bench, Question } from './question.js';

export type Asking = Readonly<{
  target: CacheTarget;
  protocol: Protocol;
  http1: boolean;
  client: GoClient;
  objects: number;
  bench: Bench;
}>;

type HttpSpec = Readonly<
  Pick<Question, 'name' | 'family' | 'asks' | 'isLong' | 'needs'> & {
    protocols?: readonly Protocol[];
    /** False if the bare server cannot answer the question. */
    bare?: false;
    /** Limits the rounds if one round takes long. */
    roundsMax?: number;
    measure: (asking: Asking) => Promise<Sample>;
  }
>;

const bothProtocols: readonly Protocol[] = ['HTTP/2', 'HTTP/1.1'];

export function httpQuestion({ protocols = bothProtocols, bare, roundsMax = Infinity, needs = [], measure, ...named }: HttpSpec): Question {
  const roundsOf = ({ rounds }: BenchOptions): number => Math.min(rounds, roundsMax);
  return {
    ...named,
    needs: ['http', ...needs],
    rounds: roundsOf,
    async *ask(bench) {
      const { http, options, progress } = bench;
      if (http === undefined) throw new Error(`${named.name} needs the Go client`);
      const { client } = http;
      const rounds = roundsOf(options);
      const remarks: string[] = [];
      const samples = new Map(protocols.map((protocol) => [protocol, new Map<CacheTarget['role'], Sample[]>()]));
      let targets = http.targets.filter(({ role }) => role !== 'bare' || bare === undefined);

      const askAll = async (asked: readonly CacheTarget[], protocol: Protocol, when: string, keep: boolean): Promise<void> => {
        for (const target of asked) {
          const { role } = target;
          progress.show(`${named.name} over ${protocol}, ${role}, ${when}`);
          const asking = { target, protocol, http1: protocol === 'HTTP/1.1', client, objects: options.objects, bench };
          const sample = await measure(asking).catch((error: unknown) => {
            if (role === 'measured') throw error;
            remarks.push(`${role}, over ${protocol}: ${error instanceof Error ? error.message : String(error)}`);
          });
          const kept = samples.get(protocol)!;
          if (sample === undefined) targets = targets.filter((other) => other !== target);
          else if (keep) kept.set(role, [...(kept.get(role) ?? []), sample]);
        }
      };

      if (rounds > 1) {
        const onNode = targets.filter(({ role }) => role !== 'against');
        for (const protocol of protocols) await askAll(onNode, protocol, 'thrown away', false);
      }
      for (let round = 1; round <= rounds; round++) {
        for (const protocol of protocols) await askAll(rotated(targets, round - 1), protocol, `round ${round}`, true);
        yield;
      }
      const answers = protocols.map((protocol) => mergeRounds(protocol, samples.get(protocol)!));
      return {
        figures: answers.flatMap(({ figures }) => figures),
        checks: answers.flatMap(({ checks }) => checks),
        remarks: [...remarks, ...answers.flatMap((answer) => answer.remarks ?? [])],
      };
    },
  };
}

function rotated<T>(all: readonly T[], by: number): readonly T[] {
  const at = all.length === 0 ? 0 : by % all.length;
  return [...all.slice(at), ...all.slice(0, at)];
}
