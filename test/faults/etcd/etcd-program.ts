/**
 * The etcd that the tests start: TEST_ETCD_BIN, else one that is installed, else one that Go builds from the module beside this file, once, into a
 * folder that later runs find.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { installed, runProgram } from '../../clients/installed.js';
import { projectFile } from '../../support/project.js';

const buildMsMax = 300_000;

/** `etcdutl`: the command of etcd's own tool, and what it takes before its arguments. */
export type EtcdProgram = Readonly<{ program: string; etcdutl: readonly string[] }>;

type Found = EtcdProgram | Readonly<{ why: string }>;

let found: Promise<Found> | undefined;

/** Why there can be no etcd, for files that declare their tests before one is built; undefined: there is one, or Go to build it. */
export function whyNoEtcd(): string | undefined {
  const canRun = (program: string): boolean => spawnSync(program, ['--version']).error === undefined;
  return process.env['TEST_ETCD_BIN'] !== undefined || canRun('etcd') || canRun('go') ? undefined : 'no etcd, and no Go to build one';
}

/** `why`: there is none, and the tests that need one are skipped. */
export function etcdProgram(): Promise<Found> {
  found ??= find();
  return found;
}

async function find(): Promise<Found> {
  const named = process.env['TEST_ETCD_BIN'];
  if (named !== undefined) return { program: named, etcdutl: ['etcdutl'] };
  if ((await installed('etcd', '--version')) !== undefined) return { program: 'etcd', etcdutl: ['etcdutl'] };
  if ((await installed('go', 'version')) === undefined) return { why: 'no etcd, and no Go to build one' };
  const folder = join(tmpdir(), `etcd-built-${userInfo().uid}`);
  const program = join(folder, 'etcd-and-etcdutl-3.6.16');
  const built = { program, etcdutl: [program, 'etcdutl'] };
  if (existsSync(program)) return built;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const unfinished = `${program}.${process.pid}`;
  const { code, stderr } = await runProgram('go', ['build', '-o', unfinished, '.'], {
    cwd: projectFile('test', 'faults', 'etcd'),
    environment: { CGO_ENABLED: '0' },
    timeoutMs: buildMsMax,
  });
  if (code !== 0) return { why: `no etcd, and Go cannot build one: ${stderr.slice(-500)}` };
  await rename(unfinished, program);
  return built;
}
