/**
 * The caches of an example, running on this machine in one folder. First the commands that the
 * README shows make certificates, then each cache gets a process, parents first. The ports are
 * those of the files, or others if one of them is taken.
 */
import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join, relative } from 'node:path';
import type { ClientIdentity } from '../../src/client.js';
import { projectFile } from '../support/project.js';
import { CacheProcess } from './cache-process.js';
import { exampleCaches, type ExampleCache } from './example-caches.js';
import { strataCommand } from './strata-command.js';

export type ExampleTreeOptions = Readonly<{ shape: string; shards: readonly string[]; directory: string }>;

const address = '127.0.0.1';
const authorityFolder = 'strata-ca';
const authority = `${authorityFolder}/ca.crt`;

export class ExampleTree {
  /** The caches as their files describe them, parents first. */
  readonly examples: readonly ExampleCache[];
  /** The commands that were run, as a user would type them in the directory. */
  readonly commands: readonly string[];
  readonly #directory: string;
  readonly #running: ReadonlyMap<string, CacheProcess>;

  private constructor(
    { directory }: ExampleTreeOptions,
    examples: readonly ExampleCache[],
    { running, commands }: Readonly<{ running: ReadonlyMap<string, CacheProcess>; commands: readonly string[] }>,
  ) {
    this.#directory = directory;
    this.examples = examples;
    this.#running = running;
    this.commands = commands;
  }

  /** Resolves when every cache is ready; if one fails, ends them all. */
  static async open(options: ExampleTreeOptions, signal: AbortSignal): Promise<ExampleTree> {
    const { shape, shards, directory } = options;
    await mkdir(directory, { recursive: true });
    const examples = await exampleCaches(shape);
    const certificates = [
      ['serving', 'localhost', address],
      ['admin'],
      ...examples.filter(({ parent }) => parent !== undefined).map(({ name }) => ['cache', name]),
      ...shards.map((shard) => ['shard', shard]),
    ].map((words) => ['cert', ...words]);
    const places = ['--ca-directory', join(directory, authorityFolder), '--out-directory', directory, '--force'];
    for (const words of certificates) await strataCommand([...words, ...places]);

    const ports = await chosenPorts(examples);
    const admin = await readPair(directory, 'admin');
    const running = new Map<string, CacheProcess>();
    const commands = certificates.map((words) => `strata ${words.join(' ')}`);
    try {
      for (const example of examples) {
        const { name, file } = example;
        const others = portFlags(example, ports);
        commands.push(['strata serve --config', relative(projectFile(), file), ...others].join(' '));
        const flags = ['--config', file, ...others];
        running.set(name, new CacheProcess({ name, folder: directory, port: ports.get(name) ?? 0, flags, admin }));
      }
      await startBelow(undefined, { examples, running, signal });
    } catch (error) {
      await closeAll(running);
      throw error;
    }
    return new ExampleTree(options, examples, { running, commands });
  }

  get caches(): readonly CacheProcess[] {
    return [...this.#running.values()];
  }

  get root(): CacheProcess {
    return this.cache(this.examples[0]?.name ?? '');
  }

  cache(name: string): CacheProcess {
    const cache = this.#running.get(name);
    if (cache === undefined) throw new Error(`no cache is named ${name}`);
    return cache;
  }

  /** The certificates of those who push for a shard. */
  async identity(shard: string): Promise<ClientIdentity> {
    return { ca: await readFile(join(this.#directory, authority), 'utf8'), ...(await readPair(this.#directory, `shard-${shard}`)) };
  }

  /** What `strata status` prints above its table of shards. */
  async status(cache: string): Promise<readonly string[]> {
    const text = await strataCommand(statusWords(this.cache(cache).url, this.#directory));
    const lines = text.split('\n');
    const table = lines.findIndex((line) => line.startsWith('SHARD') || line === 'no shards yet');
    return lines.slice(0, table === -1 ? lines.length : table).filter((line) => line !== '');
  }

  statusCommand(cache: string): string {
    return `strata ${statusWords(this.cache(cache).url, '').join(' ')}`;
  }

  async close(): Promise<void> {
    await closeAll(this.#running);
  }
}

/**
 * Starts each cache once its parent is ready, because a child without a parent waits longer after
 * each attempt.
 */
async function startBelow(
  parent: string | undefined,
  tree: Readonly<{ examples: readonly ExampleCache[]; running: ReadonlyMap<string, CacheProcess>; signal: AbortSignal }>,
): Promise<void> {
  const children = tree.examples.filter((example) => example.parent === parent);
  const starts = children.map(async ({ name }) => {
    await tree.running.get(name)?.start(tree.signal);
    await startBelow(name, tree);
  });
  // Waits until all starts have ended, so that no cache starts after the others are closed.
  for (const start of await Promise.allSettled(starts)) if (start.status === 'rejected') throw start.reason;
}

function statusWords(url: string, directory: string): readonly string[] {
  const files = { '--ca-file': authority, '--cert-file': 'admin.crt', '--key-file': 'admin.key' };
  return ['status', '--cache', url, ...Object.entries(files).flatMap(([flag, file]) => [flag, join(directory, file)])];
}

async function readPair(directory: string, name: string): Promise<{ certificate: string; key: string }> {
  const read = (suffix: string): Promise<string> => readFile(join(directory, `${name}.${suffix}`), 'utf8');
  return { certificate: await read('crt'), key: await read('key') };
}

/** Closes children first, so that none looks for a parent that has ended. */
async function closeAll(running: ReadonlyMap<string, CacheProcess>): Promise<void> {
  for (const cache of [...running.values()].toReversed()) await cache.close();
}

/** No overrides if the ports of the files are free. */
function portFlags({ name, parent, settings }: ExampleCache, ports: ReadonlyMap<string, number>): readonly string[] {
  const port = ports.get(name);
  if (port === settings.securePort) return [];
  const toParent = parent === undefined ? [] : [`--parent-urls=https://${address}:${ports.get(parent)}`];
  return [`--secure-port=${port}`, ...toParent];
}

async function chosenPorts(examples: readonly ExampleCache[]): Promise<ReadonlyMap<string, number>> {
  const wanted = examples.map(({ name, settings }) => [name, settings.securePort] as const);
  const free = await heldPorts(wanted.map(([, port]) => port)).catch(() => heldPorts(wanted.map(() => 0)));
  return new Map(wanted.map(([name], index) => [name, free[index] ?? 0]));
}

/** Throws when a port is taken. Holds all of them until the last is known, so that they differ. */
async function heldPorts(ports: readonly number[]): Promise<readonly number[]> {
  const servers = ports.map(() => createServer());
  try {
    const held: number[] = [];
    for (const [index, server] of servers.entries()) {
      server.listen(ports[index], address);
      await once(server, 'listening');
      held.push((server.address() as AddressInfo).port);
    }
    return held;
  } finally {
    for (const server of servers) if (server.listening) await new Promise((resolve) => server.close(resolve));
  }
}
