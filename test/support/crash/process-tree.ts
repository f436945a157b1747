/**
 * Runs caches as processes that form a tree, for the fault tests. Each is started as an operator
 * would start it, and reaches its parent through a proxy, which disturbs the link as networks do.
 * One authority issues the certificates of all caches.
 *
 * Every link forwards everything unless a cache has other rules. Intervals are short: what takes a
 * minute in a data centre takes seconds here.
 */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StatusReport } from '../../../src/domain/status.js';
import type { ExecutionContext } from 'ava';
import { freeze, thaw } from '../freeze.js';
import type { KubeClient } from '../kube-client.js';
import { StrataProcess } from '../strata-process.js';
import { TestAuthority } from '../test-authority.js';
import { TcpProxy } from '../tcp-proxy.js';

export type TreeCacheOptions = Readonly<{
  /** The parent cache, or a port on which a parent may start later. */
  parent?: TreeCache | number;
  /** What the cache forwards to its parent, as YAML. */
  forward?: string;
  flags?: readonly string[];
}>;

const everything = "[{types: ['*']}]";
const hurry = ['--ping-interval=1s', '--pong-timeout=1s', '--policy-poll=200ms', '--link-digest-interval=2s', '--parent-ready-grace=2s'];
const nobodyListens = 1;
const answerMsMax = 5_000;

/** A tree for one test; it is closed with the test. */
export async function aProcessTree(t: ExecutionContext): Promise<ProcessTree> {
  const tree = await ProcessTree.open();
  t.teardown(() => tree[Symbol.asyncDispose]());
  return tree;
}

export class TreeCache {
  readonly name: string;
  readonly process: StrataProcess;
  /** The proxy to the parent. A root's proxy has no target. */
  readonly uplink: TcpProxy;
  readonly client: KubeClient;

  constructor(name: string, process: StrataProcess, uplink: TcpProxy) {
    this.name = name;
    this.process = process;
    this.uplink = uplink;
    this.client = process.client();
  }

  async status(): Promise<StatusReport> {
    const { text } = await this.client.raw('GET', '/services/cache/status', { timeoutMs: answerMsMax });
    return JSON.parse(text) as StatusReport;
  }

  /**
   * The value of a metric, or the sum of its series that have these labels. `label` is written as
   * in `/metrics`: `neighbour="parent"`.
   */
  async metric(name: string, label = ''): Promise<number> {
    const { text } = await this.client.raw('GET', '/metrics', { timeoutMs: answerMsMax });
    return [...text.matchAll(new RegExp(`^${name}(\\{[^}]*\\})? (\\S+)$`, 'gm'))]
      .filter(([, labels = '']) => labels.includes(label))
      .reduce((sum, [, , value]) => sum + Number(value), 0);
  }

  /** The number of changes that this store has written in this epoch. */
  async revision(): Promise<number> {
    return await this.metric('strata_published_revision');
  }

  /** Replaces the rules for what the cache forwards; it polls its file and then applies them. */
  async forwards(rules: string): Promise<void> {
    await writeFile(join(this.process.folder, 'strata.yaml'), configOf(rules));
  }

  /** Loses the volume: the store, and the certificate beside it. */
  async loseDisk(): Promise<void> {
    await this.process.kill();
    await rm(this.process.dataFolder, { recursive: true, force: true });
  }

  /** Stops the cache cleanly, and copies its disk. */
  async backUp(): Promise<void> {
    await this.process.stop();
    await rm(this.#backup, { recursive: true, force: true });
    await cp(this.process.dataFolder, this.#backup, { recursive: true });
    await this.process.resume();
  }

  /** Restores the copy, as a volume is restored from a snapshot. */
  async restore(): Promise<void> {
    await this.loseDisk();
    await cp(this.#backup, this.process.dataFolder, { recursive: true });
  }

  get #backup(): string {
    return join(this.process.folder, 'backup');
  }

  /** Resolves once every thread of the process is stopped. */
  async freeze(): Promise<void> {
    await freeze(this.process.pid);
  }

  thaw(): void {
    thaw(this.process.pid);
  }
}

export class ProcessTree {
  readonly #folder: string;
  readonly #authority: TestAuthority;
  readonly #caches: TreeCache[] = [];

  private constructor(folder: string, authority: TestAuthority) {
    this.#folder = folder;
    this.#authority = authority;
  }

  static async open(): Promise<ProcessTree> {
    const folder = await mkdtemp(join(tmpdir(), 'strata-tree-'));
    const tree = new ProcessTree(folder, new TestAuthority(folder));
    await tree.trustAll();
    return tree;
  }

  get caches(): readonly TreeCache[] {
    return this.#caches;
  }

  /** Resolves once the cache is ready. */
  async start(name: string, { parent, forward = everything, flags = [] }: TreeCacheOptions = {}): Promise<TreeCache> {
    const uplink = await TcpProxy.start(parent instanceof TreeCache ? parent.process.port : (parent ?? nobodyListens));
    const link = parent === undefined ? [] : await this.#linkFlags(name, uplink.port);
    try {
      const started = await StrataProcess.start({
        authority: this.#authority,
        config: configOf(parent === undefined ? undefined : forward),
        flags: [...hurry, ...link, ...flags],
      });
      const cache = new TreeCache(name, started, uplink);
      this.#caches.push(cache);
      await this.trustAll();
      return cache;
    } catch (error) {
      await uplink.close();
      throw error;
    }
  }

  /**
   * Makes every cache trust the certificates of the others. Call it again after a cache has lost
   * its certificate with its disk.
   */
  async trustAll(): Promise<void> {
    const files = [this.#authority.certificateFile, ...this.#caches.map(({ process }) => process.certificateFile)];
    const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
    await writeFile(this.trustedFile, texts.join('\n'));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const cache of this.#caches.toReversed()) {
      cache.uplink.cut();
      await cache.process[Symbol.asyncDispose]();
      await cache.uplink.close();
    }
    await rm(this.#folder, { recursive: true, force: true });
  }

  get trustedFile(): string {
    return join(this.#folder, 'trusted.crt');
  }

  async #linkFlags(name: string, port: number): Promise<readonly string[]> {
    const { certificateFile, keyFile } = this.#authority.issue({ user: name, groups: ['strata'], uris: [`strata://cache/${name}`] });
    return [
      `--parent-urls=https://127.0.0.1:${port}`,
      `--parent-ca-file=${this.trustedFile}`,
      `--parent-cert-file=${certificateFile}`,
      `--parent-key-file=${keyFile}`,
    ];
  }
}

function configOf(forward: string | undefined): string {
  const children = `children: {'*': {accept: [{shards: ['*']}], offer: ${everything}}}\n`;
  return forward === undefined ? children : `${children}parent: {forward: ${forward}, follow: ${everything}}\n`;
}
