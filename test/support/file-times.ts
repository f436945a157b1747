/**
 * `npm run test:times`: runs each file of tests in a process of its own, one after the other, and
 * prints their times, slowest first. Fails when a file takes more processor time than its lane
 * allows. Its arguments are those of AVA. With TEST_LANE it measures a lane, whose files have no
 * bound.
 */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { avaProgram } from './ava-program.js';
import { spawn } from './children.js';
import type { FileTimes } from './worker-times.js';

/** The bound of a file in `npm test`. */
const processorSecondsMax = process.env['TEST_LANE'] === undefined ? 10 : Infinity;

const folder = mkdtempSync(join(tmpdir(), 'strata-times-'));
const { code, files } = await measured();
const loaded = await measured('--match', 'no test has this title');
const toLoad = new Map(loaded.files.map(({ file, startS, ownS }) => [file, ownS - startS]));
const loadingSeconds = ({ file }: FileTimes): number => toLoad.get(file) ?? Number.NaN;
rmSync(folder, { recursive: true });

print('processor s', 'of children', 'loading', 'wall s', 'servers', 'file');
for (const times of files.toSorted((one, other) => processorSeconds(other) - processorSeconds(one))) {
  const { childrenS, wallS, servers, file } = times;
  print(seconds(processorSeconds(times)), seconds(childrenS), seconds(loadingSeconds(times)), seconds(wallS), servers, file);
}
const sum = (of: (times: FileTimes) => number): number => files.reduce((total, times) => total + of(times), 0);
print(
  seconds(sum(processorSeconds)),
  seconds(sum((times) => times.childrenS)),
  seconds(sum(loadingSeconds)),
  seconds(sum((times) => times.wallS)),
  sum((times) => times.servers),
  `all ${files.length} files; to start their processes took ${seconds(sum((times) => times.startS))} s`,
);
const dear = files.filter((times) => processorSeconds(times) > processorSecondsMax);
for (const { file } of dear) print(`takes more than ${processorSecondsMax} s: ${file}`);
process.exitCode = code || (dear.length === 0 ? 0 : 1);

async function measured(...ofAva: readonly string[]): Promise<{ code: number; files: readonly FileTimes[] }> {
  const timesFile = join(folder, `times${ofAva.length}`);
  const run = spawn(process.execPath, [avaProgram, ...process.argv.slice(2), ...ofAva], {
    stdio: ['ignore', ofAva.length === 0 ? 'inherit' : 'ignore', 'inherit'],
    env: { ...process.env, TEST_TIMES: timesFile },
  });
  const [code] = (await once(run, 'exit')) as [number | null];
  const lines = readFileSync(timesFile, 'utf8').trim().split('\n');
  return { code: code ?? 1, files: lines.map((line) => JSON.parse(line) as FileTimes) };
}

function processorSeconds({ ownS, childrenS }: FileTimes): number {
  return ownS + childrenS;
}

function seconds(value: number): string {
  return value.toFixed(2);
}

function print(...columns: readonly (string | number)[]): void {
  const padded = columns.map((column, index) => (index === columns.length - 1 ? column : String(column).padStart(11)));
  process.stdout.write(`${padded.join('  ')}\n`);
}
