/**
 * `npm run demo`: shows what Strata does, with real caches, fresh certificates and objects recorded
 * from a real kcp.
 *
 *   npm run demo -- [--directory DIR] [--port PORT] [--once]
 *       one cache, which stays up until it is interrupted
 *   npm run demo -- --shape chain|per-shard|region [--directory DIR] [--stay]
 *       the caches of examples/SHAPE
 *   npm run demo -- --shape etcd [--stay]
 *       two servers of one etcd
 *
 * Exit codes: 0 everything was right · 1 something was not · 2 wrong arguments · 130 interrupted.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { showEtcd } from './etcd-demo.js';
import { showShape } from './shape-demo.js';
import { shapes } from './shapes.js';
import { showSingleCache } from './single-cache.js';

const single = 'single';
const shared = 'etcd';
const exitFailure = 1;
const exitUsage = 2;
const exitInterrupted = 130;

const usage = `npm run demo -- [--directory DIR] [--port PORT] [--once]        one cache, which stays up until it is interrupted
npm run demo -- --shape ${shapes.map(({ name }) => name).join('|')} [--directory DIR] [--stay]   the caches of examples/SHAPE
npm run demo -- --shape etcd [--stay]                                 two servers of one etcd
`;

const values = argumentsOf();
const shape = shapes.find(({ name }) => name === values?.shape);

if (values === undefined) process.exitCode = exitUsage;
else if (values.help) process.stdout.write(usage);
else if (values.shape === single)
  await inFolder(values, (directory) => showSingleCache({ directory, port: values.port, once: values.once }));
else if (values.shape === shared) await show(undefined, (signal) => showEtcd({ stay: values.stay, signal }));
else if (shape === undefined) {
  process.stderr.write(`no shape is named ${values.shape}; there are ${[single, shared, ...shapes.map(({ name }) => name)].join(', ')}\n`);
  process.exitCode = exitUsage;
} else await inFolder(values, (directory) => show(directory, (signal) => showShape(shape, { directory, stay: values.stay, signal })));

/** Undefined when the arguments are wrong; the error is printed then. */
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

/**
 * Keeps everything of the demo, keys included, in one folder. A folder that the user did not name
 * is removed, unless the demo failed in it.
 */
async function inFolder(
  { directory }: Readonly<{ directory?: string | undefined }>,
  run: (folder: string) => Promise<void>,
): Promise<void> {
  const folder = directory === undefined ? await mkdtemp(join(tmpdir(), 'strata-demo-')) : resolve(directory);
  await run(folder);
  if (directory === undefined && process.exitCode !== exitFailure) await rm(folder, { recursive: true, force: true });
}

/** `folder`: the folder that a failed demo leaves. */
async function show(folder: string | undefined, run: (interrupted: AbortSignal) => Promise<void>): Promise<void> {
  const interrupted = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => interrupted.abort());
  try {
    await run(interrupted.signal);
  } catch (error) {
    process.exitCode = interrupted.signal.aborted ? exitInterrupted : exitFailure;
    if (process.exitCode !== exitFailure) return;
    process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\n`);
    if (folder !== undefined) process.stderr.write(`Everything is left in ${folder}\n`);
  }
}
