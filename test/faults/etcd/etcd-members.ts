/**
 * Members of one etcd on this machine, each a process with a folder of its own, started as an
 * operator starts them. A member keeps its ports and its data across a restart.
 *
 * Bound: a member must answer within startMsMax, else the error shows the end of its log.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../../src/clock.js';
import { EtcdClient } from '../../../src/store/etcd/client.js';
import type { EtcdTls } from '../../../src/store/etcd/members.js';
import { runProgram } from '../../clients/installed.js';
import { freePorts } from '../../support/free-ports.js';
import { freeze, thaw } from '../../support/freeze.js';
import { TestAuthority } from '../../support/test-authority.js';
import type { EtcdProgram } from './etcd-program.js';
import { Maintenance } from './maintenance.js';
import { spawn } from '../../support/children.js';

/** More revisions than any test writes between two restores. */
const revisionsOfLife = 1_000_000_000;
const startMsMax = 30_000;
const pollMs = 50;

export type EtcdOptions = Readonly<{
  members?: number;
  /** Members and clients show certificates to each other. */
  isSecure?: boolean;
  /** Every write waits for fsync, as in production. Without it tests are several times as fast. */
  isDurable?: boolean;
  /** Further flags of each member. */
  flags?: readonly string[];
}>;

type Member = {
  readonly name: string;
  readonly url: string;
  /** Flags that name the member and its peers; `etcdutl snapshot restore` takes them as well. */
  readonly place: readonly string[];
  readonly command: readonly string[];
  readonly logFile: string;
  child: ChildProcess | undefined;
};

export class EtcdMembers {
  readonly tls: EtcdTls | undefined;
  readonly #program: EtcdProgram;
  readonly #folder: string;
  #restores = 0;
  /** The revision at which each snapshot was saved, or a somewhat later one. */
  readonly #snapshots = new Map<string, number>();
  readonly #members: readonly Member[];

  private constructor(program: EtcdProgram, folder: string, members: readonly Member[], tls: EtcdTls | undefined) {
    this.#program = program;
    this.#folder = folder;
    this.#members = members;
    this.tls = tls;
  }

  /** Resolves when every member answers. */
  static async start(
    program: EtcdProgram,
    { members: count = 1, isSecure = false, isDurable = false, flags = [] }: EtcdOptions = {},
  ): Promise<EtcdMembers> {
    const folder = await mkdtemp(join(tmpdir(), 'etcd-'));
    const ports = await freePorts(2 * count);
    const scheme = isSecure ? 'https' : 'http';
    const named = Array.from({ length: count }, (_, i) => ({
      name: `m${i + 1}`,
      url: `${scheme}://127.0.0.1:${ports[2 * i]}`,
      peerUrl: `${scheme}://127.0.0.1:${ports[2 * i + 1]}`,
    }));
    const secured = isSecure ? await secure(folder) : undefined;
    const cluster = named.map(({ name, peerUrl }) => `${name}=${peerUrl}`).join(',');
    const members = named.map(({ name, url, peerUrl }) => ({
      name,
      url,
      logFile: join(folder, `${name}.log`),
      child: undefined,
      place: [
        `--name=${name}`,
        `--data-dir=${join(folder, name)}`,
        `--initial-advertise-peer-urls=${peerUrl}`,
        `--initial-cluster=${cluster}`,
        '--initial-cluster-token=strata-test',
      ],
      command: [
        `--listen-client-urls=${url}`,
        `--advertise-client-urls=${url}`,
        `--listen-peer-urls=${peerUrl}`,
        '--log-level=warn',
        ...(isDurable ? [] : ['--unsafe-no-fsync=true']),
        ...(secured?.flags ?? []),
        ...flags,
      ],
    }));
    const etcd = new EtcdMembers(program, folder, members, secured?.tls);
    try {
      for (const i of members.keys()) etcd.begin(i);
      await Promise.all(members.map((_, i) => etcd.untilReady(i)));
      return etcd;
    } catch (error) {
      await etcd[Symbol.asyncDispose]();
      throw error;
    }
  }

  get endpoints(): readonly string[] {
    return this.#members.map(({ url }) => url);
  }

  client(endpoints = this.endpoints, timeoutMs = 5_000): EtcdClient {
    return new EtcdClient({ clock: systemClock }, { endpoints, tls: () => this.tls, timeoutMs });
  }

  /** Starts the process of a member that does not run; `untilReady` resolves when it answers. */
  begin(i: number): void {
    const member = this.#member(i);
    const log = openSync(member.logFile, 'a');
    member.child = spawn(this.#program.program, [...member.place, ...member.command], { stdio: ['ignore', log, log] });
    closeSync(log);
  }

  async untilReady(i: number): Promise<void> {
    const { url, logFile, name } = this.#member(i);
    const client = this.client([url], 1_000);
    try {
      for (const untilMs = Date.now() + startMsMax; ; await sleep(pollMs)) {
        try {
          await client.range({ key: Buffer.from('ready'), countOnly: true });
          return;
        } catch (error) {
          if (Date.now() > untilMs)
            throw new Error(`the member ${name} does not answer: ${readFileSync(logFile, 'utf8').slice(-2_000)}`, { cause: error });
        }
      }
    } finally {
      client.close();
    }
  }

  /** Resolves when the process is gone. */
  async signal(i: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const member = this.#member(i);
    const { child } = member;
    if (child === undefined) return;
    child.kill(signal);
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    member.child = undefined;
  }

  /** Resolves when the process is suspended. */
  async freeze(i: number): Promise<void> {
    await freeze(this.#pidOf(i));
  }

  thaw(i: number): void {
    thaw(this.#pidOf(i));
  }

  /** Deletes the data of a member that does not run. */
  async wipe(i: number): Promise<void> {
    await rm(this.#dataOf(i), { recursive: true, force: true });
  }

  /** Copies the data of a member that does not run, as a snapshot of its disk does. */
  async keep(i: number): Promise<void> {
    await cp(this.#dataOf(i), `${this.#dataOf(i)}.kept`, { recursive: true });
  }

  /** Replaces the data of a member that does not run by what `keep` copied. */
  async putBack(i: number): Promise<void> {
    await this.wipe(i);
    await cp(`${this.#dataOf(i)}.kept`, this.#dataOf(i), { recursive: true });
  }

  /** Saves a snapshot of the first member into a file. */
  async save(snapshot: string): Promise<void> {
    const maintenance = new Maintenance(this.endpoints[0]!);
    await maintenance.snapshot(snapshot);
    maintenance.close();
    const client = this.client();
    const { revision } = await client.txn({ compare: [], success: [], failure: [] });
    client.close();
    this.#snapshots.set(snapshot, revision);
  }

  /**
   * Restores all members from a snapshot, as an operator does while no server runs. Revisions then
   * begin above those of every earlier life, also when a snapshot is restored a second time.
   */
  async restore(snapshot: string): Promise<void> {
    const [etcdutl = '', ...args] = this.#program.etcdutl;
    const revision = this.#snapshots.get(snapshot);
    if (revision === undefined) throw new Error(`nobody has saved ${snapshot}`);
    this.#restores += 1;
    const flags = [`--bump-revision=${this.#restores * revisionsOfLife - revision}`, '--mark-compacted'];
    for (const [i, { place }] of this.#members.entries()) {
      await this.signal(i, 'SIGTERM');
      await this.wipe(i);
      const { code, stderr } = await runProgram(etcdutl, [...args, 'snapshot', 'restore', snapshot, ...flags, ...place], {
        timeoutMs: startMsMax,
      });
      if (code !== 0) throw new Error(`${etcdutl} snapshot restore: ${stderr}`);
    }
    for (const i of this.#members.keys()) this.begin(i);
    await Promise.all(this.#members.map((_, i) => this.untilReady(i)));
  }

  #pidOf(i: number): number {
    const { name, child } = this.#member(i);
    if (child?.pid === undefined) throw new Error(`the member ${name} does not run`);
    return child.pid;
  }

  #dataOf(i: number): string {
    return join(this.#folder, this.#member(i).name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#members.map((_, i) => this.signal(i, 'SIGKILL')));
    await rm(this.#folder, { recursive: true, force: true });
  }

  #member(i: number): Member {
    const member = this.#members[i];
    if (member === undefined) throw new Error(`there is no member ${i}`);
    return member;
  }
}

async function secure(folder: string): Promise<{ tls: EtcdTls; flags: readonly string[] }> {
  const authority = new TestAuthority(folder, { name: 'etcd-test-authority' });
  const serving = authority.issue({ user: 'etcd', groups: [], hosts: ['localhost', '127.0.0.1'], usages: ['server', 'client'] });
  const client = authority.issue({ user: 'strata', groups: [] });
  const [ca, cert, key] = [authority.certificateFile, serving.certificateFile, serving.keyFile];
  return {
    tls: { ca: readFileSync(ca, 'utf8'), certificate: client.certificate, key: client.key },
    flags: [
      `--cert-file=${cert}`,
      `--key-file=${key}`,
      `--trusted-ca-file=${ca}`,
      '--client-cert-auth=true',
      `--peer-cert-file=${cert}`,
      `--peer-key-file=${key}`,
      `--peer-trusted-ca-file=${ca}`,
      '--peer-client-cert-auth=true',
    ],
  };
}
