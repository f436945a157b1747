/**
 * Does on this machine what a cluster does with the rendered chart. It issues the Certificates as
 * cert-manager does, writes ConfigMaps and Secrets into volumes as kubelet does, and starts this
 * build with each container's arguments. If the tests run as root, it uses the user and groups of
 * the pod.
 *
 * It makes these replacements:
 *
 *   paths of the container    those of a temporary folder, in arguments and ConfigMaps
 *   names of Services         127.0.0.1 and a port, in arguments; certificates name 127.0.0.1 too
 *   :PORT of the container    127.0.0.1 and a port, where it answers its probes
 *
 * All other arguments are as rendered. Each issuer is an authority of its own. The user 10001 can
 * write nothing in the root file system.
 */
import { spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, closeSync, mkdirSync, openSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { spawn } from '../../support/children.js';
import { freePorts } from '../../support/free-ports.js';
import { KubeClient } from '../../support/kube-client.js';
import { writeVolume, type VolumeFiles } from '../../support/kubelet-volume.js';
import { builtMain } from '../../support/project.js';
import { TestAuthority } from '../../support/test-authority.js';
import { render, type Release, type Rendered } from './helm.js';
import { certificatesOf } from './wanted-certificate.js';
import { workloadsOf, type Volume, type Workload } from './workload.js';

const readyMsMax = 60_000;
const stopMsMax = 20_000;
const pollMs = 100;
const answerMsMax = 1_000;
const logCharactersShown = 4_000;
const namespace = 'kcp';

type Mounted = Readonly<{ source: string; write: (files: VolumeFiles) => void }>;

/** Why containers run as the user of the tests; undefined if they run as the user of their pod. */
export const whyNoOtherUser = whyAsOurselves();

export class ClusterStandIn {
  readonly #folder: string;
  readonly #authorities = new Map<string, TestAuthority>();
  /** Key: `Secret NAME` or `ConfigMap NAME`. */
  readonly #objects = new Map<string, VolumeFiles>();
  readonly #mounted: Mounted[] = [];
  readonly #reached = new Map<string, string>();
  readonly #pods: Pod[] = [];

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(t: ExecutionContext): Promise<ClusterStandIn> {
    const cluster = new ClusterStandIn(await mkdtemp(join(tmpdir(), 'strata-cluster-')));
    // Containers run as other users, so these must be able to read the folder.
    chmodSync(cluster.#folder, 0o755);
    t.teardown(async () => {
      await Promise.all(cluster.#pods.map((pod) => pod.stop()));
      await rm(cluster.#folder, { recursive: true, force: true });
    });
    return cluster;
  }

  /** The authority of the issuer with this name, or any other authority that a test needs. */
  authority(name: string): TestAuthority {
    const known = this.#authorities.get(name);
    if (known !== undefined) return known;
    const folder = join(this.#folder, 'authorities', name);
    mkdirSync(folder, { recursive: true });
    const authority = new TestAuthority(folder, { name });
    this.#authorities.set(name, authority);
    return authority;
  }

  /** Makes a Secret or ConfigMap as an operator does. */
  make(kind: 'Secret' | 'ConfigMap', name: string, files: VolumeFiles): void {
    this.#objects.set(`${kind} ${name}`, files);
    for (const { source, write } of this.#mounted) if (source === `${kind} ${name}`) write(files);
  }

  secret(name: string): VolumeFiles {
    const files = this.#objects.get(`Secret ${name}`);
    if (files === undefined) throw new Error(`there is no secret ${name}`);
    return files;
  }

  /** Makes containers reach `at` by the `url` of the chart. */
  reach(url: string, at: string): void {
    this.#reached.set(url, at);
  }

  /** Starts every pod of the release. `changed` may edit the documents first. */
  async install(
    release: Release,
    changed: (documents: readonly Rendered[]) => readonly Rendered[] = (same) => same,
  ): Promise<readonly Pod[]> {
    const documents = changed(await render(release));
    this.#apply(documents);
    const pods: Pod[] = [];
    for (const workload of workloadsOf(documents)) {
      const ports = await freePorts(workload.replicas);
      const service = documents.find(({ kind, metadata }) => kind === 'Service' && metadata.name === workload.name);
      const { ports: [{ port }] = [{ port: 0 }] } = (service?.spec ?? {}) as { ports?: readonly [{ port: number }] };
      if (service !== undefined) this.reach(`https://${workload.name}.${namespace}.svc:${port}`, `https://127.0.0.1:${ports[0]}`);
      for (const [index, own] of ports.entries()) pods.push(await this.#start(workload, index, own));
    }
    await Promise.all(pods.map((pod) => pod.untilReady()));
    return pods;
  }

  /** Does what `helm upgrade` does for values that change no pod. */
  async upgrade(release: Release): Promise<void> {
    this.#apply((await render(release)).filter(({ kind }) => kind === 'ConfigMap'));
  }

  #apply(documents: readonly Rendered[]): void {
    for (const { kind, metadata, data = {} } of documents) if (kind === 'ConfigMap') this.make(kind, metadata.name, data);
    for (const { secret, user, groups, uris, hosts, serves, issuer } of certificatesOf(documents)) {
      const authority = this.authority(issuer);
      const { certificate, key } = authority.issue({
        user,
        groups,
        uris,
        hosts: serves ? [...hosts, '127.0.0.1'] : hosts,
        usages: [serves ? 'server' : 'client'],
      });
      this.make('Secret', secret, { 'tls.crt': certificate, 'tls.key': key, 'ca.crt': authority.certificate });
    }
  }

  async #start({ name, pod, container, claims }: Workload, index: number, port: number): Promise<Pod> {
    const folder = join(this.#folder, `${name}-${index}`);
    const { runAsUser, runAsGroup, fsGroup } = pod.securityContext ?? {};
    const group = whyNoOtherUser === undefined ? (fsGroup ?? 0) : undefined;
    const places = new Map((container.volumeMounts ?? []).map((mount) => [mount.mountPath, join(folder, mount.name)]));
    const replaced = (text: string): string => {
      const paths = [...places].toSorted(([one], [other]) => other.length - one.length);
      const local = paths.reduce((so, [path, place]) => so.replaceAll(path, place), text.replaceAll('$(POD_INDEX)', String(index)));
      return [...this.#reached].reduce((so, [url, at]) => so.replaceAll(url, at), local);
    };
    const volumes: readonly Volume[] = [...(pod.volumes ?? []), ...claims.map((claim) => ({ name: claim }))];
    for (const volume of volumes) this.#mount(volume, join(folder, volume.name), { group, replaced });

    const [answersAt] = container.ports ?? [];
    const isServer = answersAt?.name === 'https';
    const address = answersAt === undefined ? undefined : `127.0.0.1:${port}`;
    const args = [
      ...container.args.map((arg) => replaced(arg).replace(`=:${answersAt?.containerPort}`, `=${address}`)),
      ...(isServer ? ['--bind-address=127.0.0.1', `--secure-port=${port}`] : []),
    ];
    const started = Pod.start({
      name: `${name}-${index}`,
      logFile: join(this.#folder, `${name}-${index}.log`),
      args,
      user: whyNoOtherUser === undefined ? { uid: runAsUser ?? 0, gid: runAsGroup ?? 0 } : {},
      url: address && `${isServer ? 'https' : 'http'}://${address}`,
      probes: [container.startupProbe, container.readinessProbe, container.livenessProbe].flatMap((probe) => probe?.httpGet.path ?? []),
    });
    this.#pods.push(started);
    return started;
  }

  #mount(
    { name, secret, configMap }: Volume,
    folder: string,
    { group, replaced }: Readonly<{ group: number | undefined; replaced: (text: string) => string }>,
  ): void {
    mkdirSync(folder, { recursive: true });
    const source = secret === undefined ? configMap && `ConfigMap ${configMap.name}` : `Secret ${secret.secretName}`;
    if (source === undefined) {
      // A disk as kubelet mounts it: the pod's group, if it has one, may write to it.
      chmodSync(folder, group === undefined || group === 0 ? 0o755 : 0o2775);
      if (group !== undefined) chownSync(folder, 0, group);
      return;
    }
    const write = (files: VolumeFiles): void => {
      const texts = Object.fromEntries(Object.entries(files).map(([file, text]) => [file, secret === undefined ? replaced(text) : text]));
      writeVolume(folder, texts, { mode: secret?.defaultMode ?? 0o644, group });
    };
    const files = this.#objects.get(source);
    if (files === undefined) throw new Error(`${name}: there is no ${source}`);
    write(files);
    this.#mounted.push({ source, write });
  }
}

type PodParts = Readonly<{
  name: string;
  logFile: string;
  args: readonly string[];
  user: Readonly<{ uid?: number; gid?: number }>;
  /** Undefined if it serves nothing. */
  url: string | undefined;
  /** Paths that must answer 200. */
  probes: readonly string[];
}>;

export class Pod {
  readonly #parts: PodParts;
  readonly #child: ChildProcess;

  private constructor(parts: PodParts, child: ChildProcess) {
    this.#parts = parts;
    this.#child = child;
  }

  static start(parts: PodParts): Pod {
    const log = openSync(parts.logFile, 'a');
    const environment = { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent' };
    const child = spawn(builtMain(), parts.args, { cwd: '/', stdio: ['ignore', log, log], env: environment, ...parts.user });
    closeSync(log);
    return new Pod(parts, child);
  }

  get name(): string {
    return this.#parts.name;
  }

  /** Throws if the pod serves nothing. */
  get url(): string {
    if (this.#parts.url === undefined) throw new Error(`${this.name} serves nothing`);
    return this.#parts.url;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async log(): Promise<string> {
    return readFile(this.#parts.logFile, 'utf8');
  }

  /**
   * Resolves once every probe has succeeded, at once if there is none. Rejects with the end of the
   * log if the pod ends first or is late.
   */
  async untilReady(): Promise<void> {
    const deadline = performance.now() + readyMsMax;
    for (const path of new Set(this.#parts.probes))
      while ((await this.get(path).catch(() => undefined))?.status !== 200) {
        if (this.hasEnded || performance.now() > deadline)
          throw new Error(
            `${this.name} ${this.hasEnded ? 'ended' : `is not ready (${path})`}, ${this.#parts.args.join(' ')}:\n${(await this.log()).slice(-logCharactersShown)}`,
          );
        await sleep(pollMs);
      }
  }

  /** `as`: the secret with the caller's certificate; without one the caller is anonymous. */
  async get(path: string, as: VolumeFiles = {}): Promise<Readonly<{ status: number; text: string }>> {
    if (this.url.startsWith('http:')) {
      const answer = await fetch(`${this.url}${path}`, { signal: AbortSignal.timeout(answerMsMax) });
      return { status: answer.status, text: await answer.text() };
    }
    const { 'tls.crt': certificate, 'tls.key': key } = as;
    const shown = certificate === undefined || key === undefined ? {} : { certificate, key };
    const client = new KubeClient({ url: this.url, ...shown });
    try {
      return await client.raw('GET', path, { timeoutMs: answerMsMax });
    } finally {
      client.close();
    }
  }

  /** Returns the exit code, or the signal. */
  async stop(): Promise<number | NodeJS.Signals | null> {
    if (this.hasEnded) return this.#child.exitCode ?? this.#child.signalCode;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    const late = setTimeout(() => this.#child.kill('SIGKILL'), stopMsMax);
    await ended;
    clearTimeout(late);
    return this.#child.exitCode ?? this.#child.signalCode;
  }
}

function whyAsOurselves(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root can start processes of another user';
  const { status } = spawnSync(builtMain(), ['--version'], { uid: 10001, gid: 10001, cwd: '/' });
  return status === 0 ? undefined : 'the user 10001 may not read this checkout';
}
