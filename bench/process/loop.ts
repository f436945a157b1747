/**
 * How late did the server's event loop run during the whole run?
 *
 * A blocked event loop delays every client, and after 15 s it loses every HTTP/2 watch. The server
 * measures itself. Limits: p99 of the worst window 10 ms, and no timer 100 ms late. The worst value
 * of each question is shown under its name.
 */
import type { LoopSample } from '../harness/loop-sampler.js';
import { check, type Figure, type Question } from '../harness/question.js';

const p99MsMax = 10;
const maxMsMax = 100;

export const loop: Question = {
  name: 'loop',
  family: 'process',
  asks: "How late did the server's event loop run during all this?",
  async ask({ loop: sampler, spans }) {
    const { samples } = sampler;
    if (samples.length === 0) return { figures: [], checks: [] };
    const during = [...spans].map(([name, rounds]) => ({
      name,
      samples: samples.filter(({ atMs }) => rounds.some(({ fromMs, toMs }) => atMs >= fromMs && atMs <= toMs)),
    }));
    return {
      figures: [
        {
          name: 'p99 of the worst window',
          value: worst(samples, 'p99Ms'),
          unit: 'ms',
          limit: { kind: 'at most', value: p99MsMax },
          note: `${samples.length} samples`,
        },
        { name: 'latest timer', value: worst(samples, 'maxMs'), unit: 'ms', limit: { kind: 'at most', value: maxMsMax } },
        ...during.flatMap(({ name, samples: some }): Figure[] =>
          some.length === 0 ? [] : [{ name: `latest during ${name}`, value: worst(some, 'maxMs'), unit: 'ms' }],
        ),
      ],
      checks: [
        check(
          'the server reports how late its loop is',
          samples.every(({ maxMs }) => !Number.isNaN(maxMs)),
          'the maximum is not among its metrics',
        ),
      ],
    };
  },
};

function worst(samples: readonly LoopSample[], of: 'p99Ms' | 'maxMs'): number {
  return Math.max(...samples.map((sample) => sample[of]));
}
