/**
 * How long does one informer take from its WatchList to the annotated bookmark, TLS handshake included?
 *
 * Ceiling: the same bytes from a bare Node TLS server, read by the same client. At most three times that.
 */
import { join } from 'node:path';
import type { Protocol, Target } from './harness/client.js';
import { median, type Informed } from './harness/jobs.js';
import { check, type Answer, type Bench, type Question } from './harness/question.js';

const timesCeilingMax = 3;
const megabyte = 1e6;

export const watchList: Question = {
  name: 'watch-list',
  asks: 'How long does one informer take to its annotated bookmark, against the same bytes from a bare TLS server?',
  async ask(bench) {
    const http1 = await askOver('HTTP/1.1', bench);
    const http2 = await askOver('HTTP/2', bench);
    return { figures: [...http1.figures, ...http2.figures], checks: [...http1.checks, ...http2.checks] };
  },
};

async function askOver(protocol: Protocol, bench: Bench): Promise<Answer> {
  const { load, target, bare, folder, options } = bench;
  const watchListFile = join(folder, 'watch-list.json');
  await load.ask('watchList', { target, protocol, informers: 1, objects: options.objects, saveTo: watchListFile });
  await bare.serve({ watchListFile });

  const informed = await rounds(bench, target, protocol);
  const ceiling = await rounds(bench, bare.target, protocol);
  const valueMs = median(informed.map(({ elapsedMs }) => elapsedMs));
  const ceilingMs = median(ceiling.map(({ elapsedMs }) => elapsedMs));
  const incomplete = informed.filter(
    ({ distinctObjects, events }) => distinctObjects !== options.objects || events !== options.objects,
  ).length;
  return {
    figures: [
      {
        name: `${protocol} median`,
        value: valueMs,
        unit: 'ms',
        ceiling: ceilingMs,
        note: `${((informed[0]?.bytes ?? 0) / megabyte).toFixed(1)} MB`,
      },
      { name: `${protocol} times ceiling`, value: valueMs / ceilingMs, unit: '×', limit: { kind: 'at most', value: timesCeilingMax } },
    ],
    checks: [
      check(
        `${protocol}: before the bookmark comes every object, once (G3, G4)`,
        incomplete === 0,
        `not in ${incomplete} of ${informed.length} rounds`,
      ),
    ],
  };
}

async function rounds({ load, options }: Bench, target: Target, protocol: Protocol): Promise<readonly Informed[]> {
  const all: Informed[] = [];
  for (let round = 0; round < options.rounds; round++) {
    const { informers } = await load.ask('watchList', { target, protocol, informers: 1, objects: options.objects });
    all.push(...informers);
  }
  return all;
}
