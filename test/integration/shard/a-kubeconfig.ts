/**
 * A kubeconfig for a stand-in, and an exec plugin, in their own folder. A test may rewrite either
 * while an agent uses it.
 */
import { chmod, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import type { ShardStandIn } from '../../support/shard-stand-in.js';

export type Members = Readonly<Record<string, unknown>>;

export const execVersion = 'client.authentication.k8s.io/v1';

export async function aFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'strata-kubeconfig-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Replaces the file atomically, so that no reader sees half of it. */
export async function replace(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}

/** An exec plugin that prints its file `answer`. */
export class TestPlugin {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** `body`: the commands of the plugin, in sh; `$folder` is the plugin's folder. */
  static async make(folder: string, body = 'cat "$folder/answer"'): Promise<TestPlugin> {
    const plugin = new TestPlugin(folder);
    await plugin.does(body);
    return plugin;
  }

  /** Relative to a kubeconfig in the same folder. */
  get command(): string {
    return './plugin.sh';
  }

  async does(body: string): Promise<void> {
    const script = join(this.folder, 'plugin.sh');
    await writeFile(`${script}.new`, `#!/bin/sh\nfolder='${this.folder}'\necho $$ >> "$folder/runs"\n${body}\n`);
    await chmod(`${script}.new`, 0o755);
    await rename(`${script}.new`, script);
  }

  async answers(status: unknown, rest: Members = {}): Promise<void> {
    await replace(join(this.folder, 'answer'), JSON.stringify({ apiVersion: execVersion, kind: 'ExecCredential', status, ...rest }));
  }

  /** The process id of each run, in order. */
  async runs(): Promise<readonly number[]> {
    try {
      return (await readFile(join(this.folder, 'runs'), 'utf8')).trim().split('\n').map(Number);
    } catch {
      return [];
    }
  }

  /** Writes a kubeconfig that uses the plugin; returns its path. */
  async kubeconfig(shard: ShardStandIn, exec: Members = {}, cluster: Members = {}): Promise<string> {
    const path = join(this.folder, 'kubeconfig');
    await replace(path, shard.kubeconfigText({ exec: { apiVersion: execVersion, command: this.command, ...exec } }, cluster));
    return path;
  }
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
