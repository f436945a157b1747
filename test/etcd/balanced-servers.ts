/** Servers of one store in etcd, each a process of its own, behind one address that sends every new connection to the next of those that run. */
import { KubeClient, type KubeClientOptions } from '../support/kube-client.js';
import type { PusherCertificate, PushTarget } from '../support/raw-pusher.js';
import { StrataProcess } from '../support/strata-process.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { TestAuthority } from '../support/test-authority.js';
import type { EtcdMembers } from './etcd-members.js';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class BalancedServers implements PushTarget {
  readonly servers: readonly StrataProcess[];
  readonly #balancer: TcpProxy;
  readonly #folder: string;
  readonly #running: Set<StrataProcess>;
  readonly #clients = new Set<KubeClient>();

  private constructor(servers: readonly StrataProcess[], balancer: TcpProxy, folder: string) {
    this.servers = servers;
    this.#balancer = balancer;
    this.#folder = folder;
    this.#running = new Set(servers);
    this.#balance();
  }

  static async start(
    etcd: EtcdMembers,
    { count = 2, flags = [] }: { count?: number; flags?: readonly string[] } = {},
  ): Promise<BalancedServers> {
    const folder = await mkdtemp(join(tmpdir(), 'strata-servers-'));
    const authority = await TestAuthority.create(folder);
    const all = [...(await etcdFlags(etcd, folder)), ...flags];
    const servers: StrataProcess[] = [];
    for (let i = 0; i < count; i += 1) servers.push(await StrataProcess.start({ authority, flags: all }));
    return new BalancedServers(servers, await TcpProxy.start(0), folder);
  }

  get url(): string {
    return `https://127.0.0.1:${this.#balancer.port}`;
  }

  /** What any of them shows. */
  get certificate(): string {
    return this.servers.map(({ certificate }) => certificate).join('');
  }

  get master(): PusherCertificate {
    return this.#server(0).master;
  }

  client(options: Omit<KubeClientOptions, 'url' | 'certificate' | 'key'> = {}): KubeClient {
    const client = new KubeClient({ ...options, url: this.url, ...this.master });
    this.#clients.add(client);
    return client;
  }

  async kill(i: number): Promise<void> {
    const server = this.#server(i);
    this.#running.delete(server);
    this.#balance();
    await server.kill();
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

  #balance(): void {
    this.#balancer.redirect(...[...this.#running].map(({ port }) => port));
  }

  #server(i: number): StrataProcess {
    const server = this.servers[i];
    if (server === undefined) throw new Error(`there is no server ${i}`);
    return server;
  }
}

async function etcdFlags({ endpoints, tls }: EtcdMembers, folder: string): Promise<readonly string[]> {
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
