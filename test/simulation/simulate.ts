/**
 * What a tree of caches costs, and how the cost grows: measures a tree of the given size, and trees
 * of a tenth and a hundredth of it.
 *
 *   npm run simulate -- --caches 1000 --depth 4 --seed 1 [--minutes 1] [--changes-per-second 1]
 *                       [--slices 16] [--types 2] [--by-region]
 *
 * Bytes exclude pings and TLS. The same seed prints the same to stdout. The exit code is 1 if the
 * caches do not end as the model says, or if a fault happened.
 */
import { parseArgs } from 'node:util';
import { measureTree, type TreeFigures } from './measure-tree.js';

const cachesMin = 3;

const { values } = parseArgs({
  options: {
    caches: { type: 'string', default: '1000' },
    depth: { type: 'string', default: '4' },
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '1' },
    'changes-per-second': { type: 'string', default: '1' },
    slices: { type: 'string', default: '16' },
    types: { type: 'string', default: '2' },
    'by-region': { type: 'boolean', default: false },
  },
});

const columns: readonly (readonly [head: string, cell: (figures: TreeFigures) => string])[] = [
  ['caches', ({ caches }) => `${caches}`],
  ['depth', ({ depth }) => `${depth}`],
  ['slices held, by all together', ({ slicesHeld }) => `${slicesHeld}`],
  ['grown in s', ({ growMs }) => seconds(growMs)],
  ['hop ms, median', ({ hopMs }) => hopMs.median.toFixed(1)],
  ['p99', ({ hopMs }) => hopMs.p99.toFixed(1)],
  ['whole tree ms, median', ({ wholeMs }) => wholeMs.median.toFixed(1)],
  ['p99', ({ wholeMs }) => wholeMs.p99.toFixed(1)],
  ['bytes a link and minute, idle, up', ({ idleBytesPerMinute }) => idleBytesPerMinute.up.toFixed(0)],
  ['down', ({ idleBytesPerMinute }) => idleBytesPerMinute.down.toFixed(0)],
  ['bytes a link and minute, busy, up', ({ busyBytesPerMinute }) => busyBytesPerMinute.up.toFixed(0)],
  ['down', ({ busyBytesPerMinute }) => busyBytesPerMinute.down.toFixed(0)],
  ['bytes a link and change', ({ bytesPerChange }) => bytesPerChange.toFixed(0)],
  ['cut off for 60 s', ({ cutOff }) => `${cutOff}`],
  ['together again in s', ({ healMs }) => seconds(healMs)],
];

async function main(): Promise<void> {
  const shape = {
    depth: numberOf('depth', values.depth),
    seed: numberOf('seed', values.seed),
    minutes: numberOf('minutes', values.minutes),
    changesPerSecond: numberOf('changes-per-second', values['changes-per-second']),
    slices: numberOf('slices', values.slices),
    types: numberOf('types', values.types),
    isByRegion: values['by-region'],
  };
  const most = numberOf('caches', values.caches);
  const sizes = [...new Set([most / 100, most / 10, most].map((size) => Math.max(cachesMin, Math.round(size))))];
  const beganMs = performance.now();
  const rows: string[][] = [columns.map(([head]) => head)];
  for (const caches of sizes) {
    const figures = await measureTree({ ...shape, caches });
    rows.push(columns.map(([, cell]) => cell(figures)));
  }
  process.stdout.write(tableOf(rows));
  const { rss } = process.memoryUsage();
  process.stderr.write(`took ${seconds(performance.now() - beganMs)} s, ${Math.round(rss / 2 ** 20)} MiB at the end\n`);
}

/** A line for each figure, a column for each size. */
function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = rows.map((row) => Math.max(...row.map(({ length }) => length)));
  const lines = columns.map((_, line) => {
    const cells = rows.map((row, column) => {
      const cell = row[line] ?? '';
      return column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0);
    });
    return `${cells.join('  ')}\n`;
  });
  return lines.join('');
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(2);
}

function numberOf(name: string, text: string): number {
  const number = Number(text);
  if (text === '' || !Number.isFinite(number) || number < 0) throw new Error(`--${name} must be a number, not ${JSON.stringify(text)}`);
  return number;
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
