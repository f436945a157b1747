/**
 * Builds a base image from the programs of this machine, for machines that reach no registry: a
 * shell, four programs, npm, and a Node for which SQLite need not be compiled. That is this Node,
 * or one that npm downloads once into a folder that later runs reuse. Debian's Node image has more
 * programs, and these at the same paths.
 */
import { existsSync, realpathSync } from 'node:fs';
import { cp, mkdir, rename, symlink } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { installed, runProgram } from '../../clients/installed.js';

const nodeApiMin = 10;
const nodeRelease = '24.22.3';
const programs = ['env', 'mkdir', 'ln'];
const npmMsMax = 120_000;
const buildahMsMax = 120_000;

/**
 * Adds the image to the store that the variables name; `folder` is for its files. Returns the
 * reason if it cannot.
 */
export async function makeBaseImage(
  name: string,
  { folder, environment }: Readonly<{ folder: string; environment: Readonly<Record<string, string>> }>,
): Promise<{ why: string } | undefined> {
  if ((await installed('buildah', '--version')) === undefined) return { why: 'buildah is not installed' };
  const node = await aNode();
  if (typeof node !== 'string') return node;
  const [npm = '', ...found] = (await printed('which', ['npm', 'sh', ...programs])).trim().split('\n');
  const copies = new Map([
    [node, '/usr/local/bin/node'],
    ...found.map((path, i) => [path, i === 0 ? '/bin/sh' : `/usr/bin/${programs[i - 1]}`] as const),
  ]);
  for (const program of copies.keys())
    for (const [, library = ''] of (await printed('ldd', [program])).matchAll(/(\/\S+) \(/g)) copies.set(library, library);
  for (const [from, to] of copies) await cp(realpathSync(from), join(folder, to));
  await cp(dirname(dirname(realpathSync(npm))), join(folder, '/usr/local/lib/node_modules/npm'), { recursive: true });
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(folder, '/usr/local/bin/npm'));
  await mkdir(join(folder, 'tmp'));

  const buildah = async (...args: readonly string[]): Promise<string> => (await printed('buildah', args, environment)).trim();
  const container = await buildah('from', 'scratch');
  await buildah('copy', '--quiet', container, folder, '/');
  await buildah('config', '--env', 'PATH=/usr/local/bin:/usr/bin:/bin', container);
  await buildah('commit', '--quiet', '--rm', '--identity-label=false', container, name);
  return undefined;
}

/** The path of a suitable Node, or why there is none. */
async function aNode(): Promise<string | { why: string }> {
  if (Number(process.versions['napi']) >= nodeApiMin) return process.execPath;
  const name = `node-linux-${process.arch}`;
  const folder = join(tmpdir(), `strata-${name}-${nodeRelease}-${userInfo().uid}`);
  const node = join(folder, 'node_modules', name, 'bin', 'node');
  if (existsSync(node)) return node;
  const unfinished = `${folder}.${process.pid}`;
  await mkdir(unfinished, { mode: 0o700 });
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', unfinished, `${name}@${nodeRelease}`];
  const { code, stderr } = await runProgram('npm', args, { timeoutMs: npmMsMax });
  if (code !== 0) return { why: `npm does not bring Node ${nodeRelease}: ${stderr.slice(-500)}` };
  await rename(unfinished, folder);
  return node;
}

async function printed(program: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<string> {
  const { code, stdout, stderr } = await runProgram(program, args, { environment, timeoutMs: buildahMsMax });
  if (code !== 0) throw new Error(`${program} ${args[0]}: ${stderr.slice(-1_000)}`);
  return stdout;
}
