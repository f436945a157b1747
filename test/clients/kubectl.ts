/** The installed kubectl, for tests that run its commands against a server of their own. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { StrataProcess } from '../support/strata-process.js';
import type { Certificate } from '../support/test-authority.js';
import { runProgram, type Ran } from './installed.js';
import { spawn } from '../support/children.js';

type KubectlOptions = Readonly<{ as?: Certificate; at?: string }>;

/** How the server URL in the kubeconfig ends by default. */
export const onePlace = '/services/cache/shards/amber/clusters/acme';

const commandMsMax = 60_000;

/** kubectl with a kubeconfig and a home folder of its own, which holds its discovery cache. */
export class Kubectl {
  readonly #folder: string;
  readonly #flags: readonly string[];

  private constructor(folder: string) {
    this.#folder = folder;
    this.#flags = [`--kubeconfig=${join(folder, 'kubeconfig')}`, `--cache-dir=${join(folder, 'cache')}`];
  }

  /** By default for the server's master at one shard and cluster. */
  static async create(strata: StrataProcess, { as = strata.master, at = onePlace }: KubectlOptions = {}): Promise<Kubectl> {
    const folder = await mkdtemp(join(strata.folder, 'kubectl-'));
    const kubeconfig = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'cache',
      clusters: [{ name: 'cache', cluster: { server: `${strata.url}${at}`, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'cache', user: { 'client-certificate': as.certificateFile, 'client-key': as.keyFile } }],
      contexts: [{ name: 'cache', context: { cluster: 'cache', user: 'cache' } }],
    };
    await writeFile(join(folder, 'kubeconfig'), JSON.stringify(kubeconfig));
    return new Kubectl(folder);
  }

  async run(args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<Ran> {
    return await runProgram('kubectl', [...args, ...this.#flags], { timeoutMs: commandMsMax, environment });
  }

  /** Runs a command that must succeed. */
  async ok(command: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<Ran> {
    const ran = await this.run([command, ...args], environment);
    if (ran.code !== 0) throw new Error(`kubectl ${command} ${args.join(' ')}: ${ran.stderr}${ran.stdout}`);
    return ran;
  }

  /**
   * The first `count` lines that match, of a command that does not end by itself. `meanwhile` runs
   * once the first has arrived.
   */
  async watch(
    args: readonly string[],
    count: number,
    meanwhile: () => Promise<void>,
    matches: (line: string) => boolean = () => true,
  ): Promise<readonly string[]> {
    const child = spawn('kubectl', [...args, ...this.#flags], { stdio: ['ignore', 'pipe', 'inherit'] });
    const late = setTimeout(() => child.kill('SIGKILL'), commandMsMax);
    const seen: string[] = [];
    let doing: Promise<void> | undefined;
    try {
      for await (const line of createInterface({ input: child.stdout })) {
        if (!matches(line)) continue;
        seen.push(line);
        if (seen.length >= count) break;
        doing ??= meanwhile();
      }
      await doing;
      return seen;
    } finally {
      clearTimeout(late);
      child.kill('SIGKILL');
    }
  }

  /** An object as it is stored, with these members replaced. */
  async object(resource: string, name: string, changes: Readonly<Record<string, unknown>>): Promise<unknown> {
    return { ...(JSON.parse((await this.ok('get', [resource, name, '-o', 'json'])).stdout) as object), ...changes };
  }

  /** Writes a manifest with these objects. */
  async file(name: string, ...objects: readonly unknown[]): Promise<string> {
    const path = join(this.#folder, `${name}.json`);
    await writeFile(path, objects.map((object) => JSON.stringify(object)).join('\n'));
    return path;
  }
}
