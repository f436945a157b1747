/**
 * A container as Kubernetes makes it of our image, built from Linux namespaces. It has a read-only
 * root with the programs where the image has them, and volumes where a manifest mounts them. Its
 * network is its own, so a program can have any port; its user owns nothing. The program is the
 * container's one process, so signals reach it.
 * Without an image, the container has the folders of this machine that programs need, and:
 *
 *   /cache-server, /kcp-front-proxy, /strata   this build
 *   /etc/hosts                                 resolves each of `hosts` to 127.0.0.1
 *   /var/lib/strata                            where it starts; owned by the image's user
 */
import type { ChildProcess } from 'node:child_process';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spawn } from '../children.js';
import { builtMain, projectFile } from '../project.js';
import { bridge } from './socket-bridge.js';

/** A folder of this machine, and the path at which the container has it. */
export type Mount = Readonly<{ folder: string; path: string; isReadOnly: boolean }>;

export type ContainerOptions = Readonly<{
  command: readonly string[];
  mounts: readonly Mount[];
  /** The folder with the contents of an image; mount points are created in it. */
  image?: string;
  /** Also the group; with `fsGroup`, the group of its volumes. */
  user?: number;
  hosts?: readonly string[];
  /** Ports inside the container that the test connects to. */
  serves?: readonly number[];
  /** For each port inside the container, the test's port that it leads to. */
  reaches?: Readonly<Record<number, number>>;
}>;

export const imageUser = 10_001;
const stopMsMax = 15_000;

const inNetwork = 'ip link set lo up && exec "$@"';
/**
 * `$1` is the new root, `$2` the user, `$3` how many mounts follow, each as folder, path and `ro`
 * or `rw`; then comes the program.
 */
const inContainer = `
  root=$1 user=$2 mounts=$3 readonly=; shift 3
  mount --make-rprivate /
  inside() { mkdir -p "$root$2" && mount --rbind "$1" "$root$2" && { [ "$3" = rw ] || readonly="$readonly $2"; }; }
  if [ -n "$IMAGE" ]; then mount --bind "$IMAGE" "$root"; else
    mount -t tmpfs -o mode=755 none "$root"
    for each in bin sbin lib lib32 lib64 libx32 usr; do
      if [ -L "/$each" ]; then cp -P "/$each" "$root/$each"; elif [ -d "/$each" ]; then inside "/$each" "/$each" ro; fi
    done
    for each in "$NODE_FOLDER" "$CHECKOUT"; do case $each in /usr|/usr/*) ;; *) inside "$each" "$each" ro;; esac; done
    mkdir -p "$root/tmp" "$root/var/lib/strata" && chown ${imageUser}:${imageUser} "$root/var/lib/strata"
    for each in cache-server kcp-front-proxy strata; do ln -s "$MAIN" "$root/$each"; done
  fi
  inside /proc /proc rw; inside /dev /dev rw
  mkdir -p "$root/etc" && echo "127.0.0.1 localhost $HOSTS" > "$root/etc/hosts"
  while [ "$mounts" -gt 0 ]; do inside "$1" "$2" "$3"; shift 3; mounts=$((mounts - 1)); done
  for each in $readonly /; do mount -o remount,bind,ro "$root$each"; done
  set -- env -i --chdir=/var/lib/strata PATH="$NODE_FOLDER/bin:/usr/local/bin:/usr/bin:/bin" "$@"
  # No image has setpriv, by which the program would end with the test's worker however that ends.
  [ -z "$IMAGE" ] || exec setpriv --no-new-privs chroot --userspec="$user:$user" --groups= "$root" "$@"
  exec chroot "$root" setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --bounding-set=-all --pdeathsig KILL "$@"`;

export class Container {
  readonly #folder: string;
  readonly #options: ContainerOptions;
  readonly #network: ChildProcess;
  readonly #servers: readonly Server[];
  readonly #ports: ReadonlyMap<number, number>;
  #child: ChildProcess | undefined;

  private constructor(
    folder: string,
    options: ContainerOptions,
    joined: Readonly<{ network: ChildProcess; servers: readonly Server[]; ports: ReadonlyMap<number, number> }>,
  ) {
    this.#folder = folder;
    this.#options = options;
    this.#network = joined.network;
    this.#servers = joined.servers;
    this.#ports = joined.ports;
  }

  static whyNot(): string | undefined {
    const script = `${inNetwork} && mount -t tmpfs none /mnt`;
    const { status, error, stderr } = spawnSync('unshare', ['--mount', '--net', 'sh', '-ec', script, 'sh', 'setpriv', '--version'], {
      encoding: 'utf8',
    });
    return status === 0 ? undefined : `no container can be made here: ${error?.message ?? stderr.trim().slice(0, 200)}`;
  }

  /** Resolves once the container has started; its program may not be ready. */
  static async start(options: ContainerOptions): Promise<Container> {
    const { serves = [], reaches = {} } = options;
    const folder = await mkdtemp(join(tmpdir(), 'strata-container-'));
    await mkdir(join(folder, 'root'));
    const socket = (name: string): string => join(folder, `${name}.sock`);
    const inward = serves.map((port) => ({ port, path: socket(`in-${port}`) }));
    const outward = Object.entries(reaches).map(([port, own]) => ({ port: Number(port), own, path: socket(`out-${port}`) }));
    const servers: Server[] = [];
    for (const { own, path } of outward) servers.push(await bridge(path, own));
    const ports = new Map<number, number>();
    for (const { port, path } of inward) {
      const server = await bridge(0, path);
      servers.push(server);
      ports.set(port, (server.address() as AddressInfo).port);
    }
    const places = [...inward.flatMap(({ port, path }) => [path, port]), ...outward.flatMap(({ port, path }) => [port, path])];
    const program = [process.execPath, fileURLToPath(new URL('./socket-bridge.js', import.meta.url)), ...places.map(String)];
    const network = spawn('unshare', ['--net', 'sh', '-ec', inNetwork, 'sh', ...program], { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(network.stdout, 'data');
    const container = new Container(folder, options, { network, servers, ports });
    container.restart();
    return container;
  }

  /** The URL at which the test reaches what listens on that port inside. */
  url(port: number): string {
    return `https://127.0.0.1:${this.#ports.get(port)}`;
  }

  /** Starts the same container again, on the same volumes, after it has ended. */
  restart(): void {
    if (this.#child !== undefined) throw new Error('the container is running already');
    const { command, mounts, image = '', user = imageUser, hosts = [] } = this.#options;
    const volumes = mounts
      .toSorted((a, b) => a.path.length - b.path.length)
      .flatMap(({ folder, path, isReadOnly }) => [folder, path, isReadOnly ? 'ro' : 'rw']);
    const given = [join(this.#folder, 'root'), String(user), String(mounts.length), ...volumes, ...command];
    const env = {
      PATH: process.env['PATH'],
      NODE_FOLDER: dirname(dirname(process.execPath)),
      CHECKOUT: projectFile(),
      MAIN: builtMain(),
      HOSTS: hosts.join(' '),
      IMAGE: image,
    };
    const log = openSync(this.#logFile, 'a');
    this.#child = spawn(
      'nsenter',
      [`--net=/proc/${this.#network.pid}/ns/net`, 'unshare', '--mount', 'sh', '-ec', inContainer, 'sh', ...given],
      {
        stdio: ['ignore', log, log],
        env,
      },
    );
    closeSync(log);
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Its exit code, or the signal that ended it, once it has ended by itself. */
  async ended(): Promise<NodeJS.Signals | number | null> {
    const child = this.#child;
    if (child === undefined) throw new Error('the container is not running');
    if (this.isRunning) await once(child, 'exit');
    this.#child = undefined;
    return child.signalCode ?? child.exitCode;
  }

  /** Sends SIGTERM, then SIGKILL if the container does not end. Resolves as `ended` does. */
  async stop(): Promise<NodeJS.Signals | number | null> {
    const child = this.#child;
    if (child === undefined) return null;
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), stopMsMax);
    const end = await this.ended();
    clearTimeout(late);
    return end;
  }

  async log(): Promise<string> {
    return readFile(this.#logFile, 'utf8');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    for (const server of this.#servers) server.close();
    this.#network.stdin?.end();
    if (this.#network.exitCode === null) await once(this.#network, 'exit');
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  get #logFile(): string {
    return join(this.#folder, 'log');
  }
}
