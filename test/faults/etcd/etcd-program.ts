/**
 * Finds the etcd that the tests start: TEST_ETCD_BIN, else an installed one, else one that Go
 * builds once from the module beside this file, into a folder that later runs find.
 */
import { spawnSync } from 'node:child_process';
import { buildGoProgramOnce, installed } from '../../clients/installed.js';
import { projectFile } from '../../support/project.js';

const buildMsMax = 300_000;

/** `etcdutl`: the command of etcd's offline tool, and the words before its arguments. */
export type EtcdProgram = Readonly<{ program: string; etcdutl: readonly string[] }>;

type Found = EtcdProgram | Readonly<{ why: string }>;

let found: Promise<Found> | undefined;

/**
 * Why no etcd can be started; undefined if one is installed or Go can build it. For files that must
 * know this before they declare their tests.
 */
export function whyNoEtcd(): string | undefined {
  const canRun = (program: string): boolean => spawnSync(program, ['--version']).error === undefined;
  return process.env['TEST_ETCD_BIN'] !== undefined || canRun('etcd') || canRun('go') ? undefined : 'no etcd, and no Go to build one';
}

/** `why`: the reason why there is none. Tests that need one are then skipped. */
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
