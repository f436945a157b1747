/**
 * How long does a full wildcard LIST take, on an open connection?
 *
 * Ceiling: the same bytes from a bare Node TLS server, read by the same client. At most three times that.
 */
import { join } from 'node:path';
import type { Protocol } from './harness/client.js';
import { median } from './harness/jobs.js';
import { check, type Answer, type Bench, type Question } from './harness/question.js';

const timesCeilingMax = 3;
const megabyte = 1e6;

export const list: Question = {
  name: 'list',
  asks: 'How long does a full wildcard LIST take, against the same bytes from a bare TLS server?',
  async ask(bench) {
    const http1 = await askOver('HTTP/1.1', bench);
    const http2 = await askOver('HTTP/2', bench);
    return { figures: [...http1.figures, ...http2.figures], checks: [...http1.checks, ...http2.checks] };
  },
};

async function askOver(protocol: Protocol, { load, target, bare, folder, options, acknowledged }: Bench): Promise<Answer> {
  const listFile = join(folder, 'list.json');
  const listed = await load.ask('list', { target, protocol, rounds: options.rounds, saveTo: listFile });
  await bare.serve({ listFile });
  const ceiling = await load.ask('list', { target: bare.target, protocol, rounds: options.rounds });

  const valueMs = median(listed.elapsedMs);
  const ceilingMs = median(ceiling.elapsedMs);
  const missing = acknowledged.resourceVersions.filter(
    (resourceVersion, index) => listed.resourceVersions[index] !== resourceVersion,
  ).length;
  return {
    figures: [
      {
        name: `${protocol} median`,
        value: valueMs,
        unit: 'ms',
        ceiling: ceilingMs,
        note: `${(listed.bytes / megabyte).toFixed(1)} MB, ${spread(listed.elapsedMs)}`,
      },
      { name: `${protocol} times ceiling`, value: valueMs / ceilingMs, unit: '×', limit: { kind: 'at most', value: timesCeilingMax } },
    ],
    checks: [
      check(
        `${protocol}: every object is listed at its acknowledged revision`,
        missing === 0 && listed.resourceVersions.length === options.objects,
        `${missing} are not`,
      ),
      check(`${protocol}: an object is listed once`, listed.duplicates === 0, `${listed.duplicates} came again`),
    ],
  };
}

function spread(values: readonly number[]): string {
  return `${Math.min(...values).toFixed(0)}…${Math.max(...values).toFixed(0)} ms`;
}
