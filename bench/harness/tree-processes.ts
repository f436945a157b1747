/**
 * Caches that form a tree, for the questions about tiers. Each is a process, started as an operator
 * would start it.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StrataProcess } from '../../test/support/strata-process.js';
import { TestAuthority } from '../../test/support/test-authority.js';
import { TcpProxy } from '../../test/support/tcp-proxy.js';

const everything = "[{types: ['*']}]";

export type CacheOptions = Readonly<{
  parent?: StrataProcess;
  /** The policies, as YAML; by default everything passes. */
  forward?: string;
  follow?: string;
  /** A proxy between the cache and its parent; by default they connect directly. */
  proxy?: TcpProxy;
  flags?: readonly string[];
  environment?: Readonly<Record<string, string>>;
}>;

export class TreeProcesses {
  readonly #folder: string;
  readonly #authority: TestAuthority;
  readonly #caches: StrataProcess[] = [];
  readonly #proxies: TcpProxy[] = [];

  private constructor(folder: string, authority: TestAuthority) {
    this.#folder = folder;
    this.#authority = authority;
  }

  static async open(): Promise<TreeProcesses> {
    const folder = await mkdtemp(join(tmpdir(), 'strata-bench-tree-'));
    return new TreeProcesses(folder, new TestAuthority(folder));
  }

  /** Resolves when the cache is ready and connected to its parent, if it has one. */
  async start(
    name: string,
    { parent, forward = everything, follow = everything, proxy, flags = [], environment = {} }: CacheOptions = {},
  ): Promise<StrataProcess> {
    const children = `children: {'*': {accept: [{shards: ['*']}], offer: ${everything}}}\n`;
    const link = `parent: {forward: ${forward}, follow: ${follow}}\n`;
    const linkFlags = parent === undefined ? [] : await this.#linkFlags(name, parent, proxy);
    const cache = await StrataProcess.start({
      authority: this.#authority,
      config: parent === undefined ? children : children + link,
      flags: [...linkFlags, ...flags],
      environment,
    });
    this.#caches.push(cache);
    return cache;
  }

  /** A proxy to a cache, which can delay or break the connection. */
  async proxyTo({ port }: StrataProcess): Promise<TcpProxy> {
    const proxy = await TcpProxy.start(port);
    this.#proxies.push(proxy);
    return proxy;
  }

  async #linkFlags(name: string, parent: StrataProcess, proxy: TcpProxy | undefined): Promise<readonly string[]> {
    const { certificateFile, keyFile } = this.#authority.issue({ user: name, groups: ['strata'], uris: [`strata://cache/${name}`] });
    return [
      `--parent-urls=https://127.0.0.1:${(proxy ?? parent).port}`,
      `--parent-ca-file=${parent.certificateFile}`,
      `--parent-cert-file=${certificateFile}`,
      `--parent-key-file=${keyFile}`,
    ];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const cache of this.#caches.toReversed()) await cache[Symbol.asyncDispose]();
    for (const proxy of this.#proxies) await proxy.close();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
