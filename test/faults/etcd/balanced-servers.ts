/**
 * Servers of one store in etcd, each a process of its own, behind one address. Each new connection
 * goes to the next running server. All servers show one certificate, as behind a balancer that
 * passes TLS through. kcp's own cache server can be one of them.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KubeClient, type KubeClientOptions } from '../../support/kube-client.js';
import type { PushTarget } from '../../support/raw-pusher.js';
import { StrataProcess } from '../../support/strata-process.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { TestAuthority, type Certificate } from '../../support/test-authority.js';
import type { EtcdMembers } from './etcd-members.js';

/** How servers reach the members of etcd, which may be behind proxies. */
export type ReachedEtcd = Pick<EtcdMembers, 'endpoints' | 'tls'>;

type Parts = Readonly<{
  balancer: TcpProxy;
  folder: string;
  authority: TestAuthority;
  master: Certificate;
  certificate: string;
  flags: readonly string[];
  environment: Readonly<Record<string, string>>;
}>;

export class BalancedServers implements PushTarget {
  readonly servers: StrataProcess[] = [];
  readonly authority: TestAuthority;
  readonly master: Certificate;
  /** The CA of the certificate that all servers show. */
  readonly certificate: string;
  readonly #balancer: TcpProxy;
  readonly #folder: string;
  readonly #flags: readonly string[];
  readonly #environment: Readonly<Record<string, string>>;
  readonly #running = new Set<StrataProcess>();
  readonly #clients = new Set<KubeClient>();

  private constructor({ balancer, folder, authority, master, certificate, flags, environment }: Parts) {
    this.#balancer = balancer;
    this.#folder = folder;
    this.authority = authority;
    this.master = master;
    this.certificate = certificate;
    this.#flags = flags;
    this.#environment = environment;
  }

  /** Starts `count` Strata servers. */
  static async start(
    etcd: ReachedEtcd,
    {
      count = 2,
      flags = [],
      environment = {},
    }: Readonly<{ count?: number; flags?: readonly string[]; environment?: Readonly<Record<string, string>> }> = {},
  ): Promise<BalancedServers> {
    const folder = await mkdtemp(join(tmpdir(), 'strata-servers-'));
    const authority = new TestAuthority(folder);
    const serving = authority.issue({
      user: 'caches',
      groups: [],
      hosts: ['localhost', '127.0.0.1'],
      usages: ['server'],
    });
    const all = [
      '--etcd-prefix=/cache',
      ...(await etcdFlags(etcd, folder)),
      `--tls-cert-file=${serving.certificateFile}`,
      `--tls-private-key-file=${serving.keyFile}`,
      ...flags,
    ];
    const master = authority.issue({ user: 'cache-client', groups: ['system:masters'] });
    const certificate = await readFile(authority.certificateFile, 'utf8');
    const balancer = await TcpProxy.start(0);
    const servers = new BalancedServers({ balancer, folder, authority, master, certificate, flags: all, environment });
    try {
      for (let i = 0; i < count; i += 1) await servers.add();
      return servers;
    } catch (error) {
      await servers[Symbol.asyncDispose]();
      throw error;
    }
  }

  get url(): string {
    return `https://127.0.0.1:${this.#balancer.port}`;
  }

  client(options: Omit<KubeClientOptions, 'url' | 'certificate' | 'key'> = {}): KubeClient {
    const client = new KubeClient({ ...options, url: this.url, certificate: this.master.certificate, key: this.master.key });
    this.#clients.add(client);
    return client;
  }

  /** Starts one more server. `program`: kcp's own cache server. */
  async add(program?: string): Promise<void> {
    const server = await StrataProcess.start({
      authority: this.authority,
      flags: this.#flags,
      environment: this.#environment,
      ...(program === undefined ? {} : { program }),
    });
    this.servers.push(server);
    this.#running.add(server);
    this.#balance();
  }

  async kill(i: number): Promise<void> {
    const server = this.#leave(i);
    await server.kill();
  }

  async stop(i: number): Promise<void> {
    const server = this.#leave(i);
    await server.stop();
  }

  async resume(i: number): Promise<void> {
    const server = this.#server(i);
    await server.resume();
    this.#running.add(server);
    this.#balance();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.#balancer.close();
    await Promise.all(this.servers.map((server) => server[Symbol.asyncDispose]()));
    await rm(this.#folder, { recursive: true, force: true });
  }

  #leave(i: number): StrataProcess {
    const server = this.#server(i);
    this.#running.delete(server);
    this.#balance();
    return server;
  }

  #balance(): void {
    this.#balancer.redirect(...[...this.#running].map(({ port }) => port));
  }

  #server(i: number): StrataProcess {
    const server = this.servers[i];
    if (server === undefined) throw new Error(`there is no server ${i}`);
    return server;
  }
}

async function etcdFlags({ endpoints, tls }: ReachedEtcd, folder: string): Promise<readonly string[]> {
  const servers = `--etcd-servers=${endpoints.join(',')}`;
  if (tls === undefined) return [servers];
  const files = { cafile: tls.ca, certfile: tls.certificate, keyfile: tls.key };
  const flags = Object.entries(files).map(async ([name, text = '']) => {
    const file = join(folder, `etcd-${name}.pem`);
    await writeFile(file, text);
    return `--etcd-${name}=${file}`;
  });
  return [servers, ...(await Promise.all(flags))];
}
