/**
 * The etcd that the tests start: TEST_ETCD_BIN, else one that is installed, else one that Go builds from the module beside this file, once, into a
 * folder that later runs find.
 */
import { spawnSync } from 'node:child_process';
import { buildGoProgramOnce, installed } from '../../clients/installed.js';
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
  const built = await buildGoProgramOnce('etcd-and-etcdutl-3.6.16', {
    source: '.',
    module: projectFile('test', 'faults', 'etcd'),
    timeoutMs: buildMsMax,
  });
  if ('why' in built) return { why: `no etcd, and Go cannot build one: ${built.why}` };
  return { program: built.program, etcdutl: [built.program, 'etcdutl'] };
}
