/**
 * `npm run demo`: what Strata does, with real caches, fresh certificates and objects that were recorded from a real kcp.
 *
 *   npm run demo -- [--directory DIR] [--port PORT] [--once]                one cache, which stays up until it is interrupted
 *   npm run demo -- --shape chain|per-shard|region [--directory DIR] [--stay]   the caches of examples/SHAPE
 *
 * Exit codes: 0 everything was right · 1 something was not · 2 wrong arguments · 130 interrupted.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { showShape } from './shape-demo.js';
import { shapes, type Shape } from './shapes.js';
import { showSingleCache } from './single-cache.js';

const single = 'single';
const exitFailure = 1;
const exitUsage = 2;
const exitInterrupted = 130;

const usage = `npm run demo -- [--directory DIR] [--port PORT] [--once]        one cache, which stays up until it is interrupted
npm run demo -- --shape ${shapes.map(({ name }) => name).join('|')} [--directory DIR] [--stay]   the caches of examples/SHAPE
`;

const values = argumentsOf();
const shape = shapes.find(({ name }) => name === values?.shape);

if (values === undefined) process.exitCode = exitUsage;
else if (values.help) process.stdout.write(usage);
else if (values.shape === single)
  await inFolder(values, (directory) => showSingleCache({ directory, port: values.port, once: values.once }));
else if (shape === undefined) {
  process.stderr.write(`no shape is named ${values.shape}; there are ${[single, ...shapes.map(({ name }) => name)].join(', ')}\n`);
  process.exitCode = exitUsage;
} else await inFolder(values, (directory) => show(shape, directory, values.stay));

/** Undefined when they are wrong, which has been said then. */
function argumentsOf() {
  try {
    return parseArgs({
      options: {
        shape: { type: 'string', default: single },
        directory: { type: 'string' },
        port: { type: 'string', default: '0' },
        once: { type: 'boolean', default: false },
        stay: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
    return undefined;
  }
}

/** Everything of the demo is in one folder, keys included. One that nobody has named is removed, unless something went wrong in it. */
async function inFolder(
  { directory }: Readonly<{ directory?: string | undefined }>,
  run: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = directory === undefined ? await mkdtemp(join(tmpdir(), 'strata-demo-')) : resolve(directory);
  await run(folder);
  if (directory === undefined && process.exitCode !== exitFailure) await rm(folder, { recursive: true, force: true });
}

async function show(shown: Shape, folder: string, stay: boolean): Promise<void> {
  const interrupted = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => interrupted.abort());
  try {
    await showShape(shown, { directory: folder, stay, signal: interrupted.signal });
  } catch (error) {
    process.exitCode = interrupted.signal.aborted ? exitInterrupted : exitFailure;
    if (process.exitCode === exitFailure)
      process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\nEverything is left in ${folder}\n`);
  }
}
