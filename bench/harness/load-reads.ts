/** The jobs that read: lists, WatchLists up to their bookmark, and watches that stay. */
import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type Answer, type Protocol, type Target } from './client.js';
import { EventScanner, endsInitialEvents, indexIn, revisionIn, shown, typeOf } from './event-scanner.js';
import {
  wallClock,
  type Informed,
  type Line,
  type ListJob,
  type Listed,
  type SeenByWatcher,
  type WatchJob,
  type WatchListJob,
  type WatchListed,
  type Watched,
} from './jobs.js';
import { nameOf, wildcardPath } from './objects.js';

const ok = 200;
const pollMs = 5;
/** How long a watch is observed after its last expected event, to catch one that must not come. */
const surplusMs = 300;

const informerQuery = 'watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=422';

export async function listJob({ target, protocol, rounds, saveTo }: ListJob): Promise<Listed> {
  const client = new Client(target, protocol);
  try {
    const first = Buffer.concat((await timedList(client)).chunks);
    if (saveTo !== undefined) await writeFile(saveTo, first);
    const elapsedMs: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const list = await timedList(client);
      const bytes = list.chunks.reduce((sum, chunk) => sum + chunk.length, 0);
      if (bytes !== first.length) throw new Error(`a list of ${bytes} bytes, the first one had ${first.length}`);
      elapsedMs.push(list.elapsedMs);
    }
    return { elapsedMs, bytes: first.length, ...contentOf(first) };
  } finally {
    client.close();
  }
}

/** The chunks are not used while the clock runs. */
async function timedList(client: Client): Promise<Readonly<{ elapsedMs: number; chunks: readonly Buffer[] }>> {
  const chunks: Buffer[] = [];
  const startedAt = performance.now();
  const answer = await client.get(wildcardPath);
  await answer.read((chunk) => void chunks.push(chunk));
  const elapsedMs = performance.now() - startedAt;
  if (answer.status !== ok) throw new Error(`LIST: ${answer.status} ${Buffer.concat(chunks).toString('utf8', 0, 300)}`);
  return { elapsedMs, chunks };
}

function contentOf(bytes: Buffer): Pick<Listed, 'revision' | 'resourceVersions' | 'duplicates'> {
  const list = JSON.parse(bytes.toString('utf8')) as {
    metadata: { resourceVersion: string };
    items: readonly { metadata: { name: string; resourceVersion: string } }[];
  };
  const byName = new Map(list.items.map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
  const resourceVersions = Array.from({ length: byName.size }, (_, index) => byName.get(nameOf(index)) ?? '');
  return { revision: list.metadata.resourceVersion, resourceVersions, duplicates: list.items.length - byName.size };
}

export async function watchListJob({ target, protocol, informers, objects, saveTo }: WatchListJob): Promise<WatchListed> {
  const saved: Buffer[] = [];
  const startedAt = performance.now();
  const informed = await Promise.all(
    Array.from({ length: informers }, () => inform({ target, protocol, objects }, saveTo === undefined ? undefined : saved)),
  );
  const elapsedMs = performance.now() - startedAt;
  if (saveTo !== undefined) await writeFile(saveTo, Buffer.concat(saved));
  return { elapsedMs, informers: informed };
}

async function inform(
  { target, protocol, objects }: Pick<WatchListJob, 'target' | 'protocol' | 'objects'>,
  saved: Buffer[] | undefined,
): Promise<Informed> {
  const client = new Client(target, protocol);
  const seen = new Uint8Array(objects);
  const startedAt = performance.now();
  let elapsedMs = Number.NaN;
  let [bytes, events, distinctObjects] = [0, 0, 0];

  const scanner = new EventScanner((line) => {
    const type = typeOf(line);
    if (type === 'ADDED') {
      const index = indexIn(line);
      events += 1;
      distinctObjects += 1 - (seen[index] ?? 1);
      seen[index] = 1;
    } else if (type === 'BOOKMARK' && endsInitialEvents(line)) {
      elapsedMs = performance.now() - startedAt;
      client.close();
    } else if (type !== 'BOOKMARK') throw new Error(`among initial events: ${shown(line)}`);
  });
  try {
    const answer = expectOk(await client.get(`${wildcardPath}?${informerQuery}`));
    await answer.read((chunk) => {
      bytes += chunk.length;
      saved?.push(chunk);
      scanner.push(chunk);
    });
    if (Number.isNaN(elapsedMs)) throw new Error(`a WatchList ended without its bookmark, after ${events} events`);
    return { elapsedMs, bytes, events, distinctObjects };
  } finally {
    client.close();
  }
}

export async function watchJob(job: WatchJob, line: Line): Promise<Watched> {
  const watches = Array.from({ length: job.watchers }, () => new OpenWatch(job.target, job.protocol));
  try {
    await Promise.all(watches.map((watch) => watch.open(job.resourceVersion)));
    line.ready();
    const events = await Promise.race([line.received, ...watches.map((watch) => watch.failed)]);
    const deadline = wallClock() + job.lateMsMax;
    while (wallClock() < deadline && watches.some((watch) => watch.events < events))
      await Promise.race([sleep(pollMs), ...watches.map((watch) => watch.failed)]);
    await sleep(surplusMs);
    return { watchers: watches.map((watch) => watch.seen()) };
  } finally {
    for (const watch of watches) watch.close();
  }
}

/** A watch that records what it sees. `failed` never resolves; it rejects when the watch ends. */
class OpenWatch {
  readonly #client: Client;
  readonly #revisions: number[] = [];
  readonly #indexes: number[] = [];
  #lastEventAt = 0;
  failed: Promise<never> = new Promise(() => {});

  constructor(target: Target, protocol: Protocol) {
    this.#client = new Client(target, protocol);
  }

  get events(): number {
    return this.#revisions.length;
  }

  async open(resourceVersion: string): Promise<void> {
    const answer = expectOk(
      await this.#client.get(`${wildcardPath}?watch=true&allowWatchBookmarks=true&timeoutSeconds=600&resourceVersion=${resourceVersion}`),
    );
    const scanner = new EventScanner((line) => {
      const type = typeOf(line);
      if (type === 'BOOKMARK') return;
      if (type !== 'MODIFIED') throw new Error(`a watch of updates saw ${shown(line)}`);
      this.#revisions.push(revisionIn(line));
      this.#indexes.push(indexIn(line));
    });
    const reading = answer.read((chunk) => {
      scanner.push(chunk);
      this.#lastEventAt = wallClock();
    });
    this.failed = reading.then(() => {
      throw new Error('the server ended a watch');
    });
    this.failed.catch(() => {});
  }

  seen(): SeenByWatcher {
    return { revisions: Float64Array.from(this.#revisions), indexes: Int32Array.from(this.#indexes), lastEventAt: this.#lastEventAt };
  }

  close(): void {
    this.#client.close();
  }
}

function expectOk(answer: Answer): Answer {
  if (answer.status !== ok) throw new Error(`a watch was answered ${answer.status}`);
  return answer;
}
