/**
 * Jobs that measure how long a change takes to its watchers: writes at a steady pace, and watches
 * that record when they see each change.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from './client.js';
import { EventScanner, indexIn, resourceVersionIn, roundIn, shown, typeOf } from './event-scanner.js';
import { wallClock, type Line, type SteadyJob, type WitnessJob, type Witnessed, type Written } from './jobs.js';
import { percentile } from './statistics.js';
import { collectionPath, pushedMixedObject, type MixedObject } from './mixed-objects.js';

const created = 201;
const ok = 200;
const pollMs = 5;

/**
 * A late write does not delay the next one, because the delay that a user would see counts. An
 * object has only one write under way.
 */
export async function steadyJob({ target, protocol, shard, objects, everyMs }: SteadyJob, line: Line): Promise<Written> {
  const client = new Client(target, protocol);
  const written = Array.from({ length: objects }, (_, index) => pushedMixedObject(shard, index));
  const versions = await Promise.all(
    written.map(async (object) => {
      const answer = await client.write('POST', collectionPathOf(object), object.text(0));
      if (answer.status !== created) throw new Error(`POST: ${answer.status} ${answer.body.toString('utf8', 0, 300)}`);
      return resourceVersionIn(answer.body);
    }),
  );
  const writes: { index: number; round: number; sentAt: number; tookMs: number }[] = [];
  const busy = new Set<number>();
  const write = async (index: number, round: number): Promise<void> => {
    busy.add(index);
    const sentAt = wallClock();
    const object = written[index]!;
    const answer = await client.write('PUT', `${collectionPathOf(object)}/${object.name}`, object.text(round, versions[index]));
    if (answer.status !== ok) throw new Error(`PUT: ${answer.status} ${answer.body.toString('utf8', 0, 300)}`);
    versions[index] = resourceVersionIn(answer.body);
    writes.push({ index, round, sentAt, tookMs: wallClock() - sentAt });
    busy.delete(index);
  };

  line.ready();
  let stopped = false;
  void line.received.then(() => (stopped = true));
  const startedAt = wallClock();
  const underWay: Promise<void>[] = [];
  try {
    for (let count = 0; !stopped; count += 1) {
      await sleep(Math.max(0, startedAt + count * everyMs - wallClock()));
      const index = count % objects;
      if (busy.has(index)) throw new Error(`a write was not answered in ${objects * everyMs} ms`);
      underWay.push(write(index, 1 + Math.floor(count / objects)));
    }
    await Promise.all(underWay);
  } finally {
    client.close();
  }
  const tookMs = writes.map((one) => one.tookMs);
  return {
    indexes: Int32Array.from(writes, ({ index }) => index),
    rounds: Int32Array.from(writes, ({ round }) => round),
    sentAt: Float64Array.from(writes, ({ sentAt }) => sentAt),
    p50Ms: percentile(tookMs, 0.5),
    p99Ms: percentile(tookMs, 0.99),
  };
}

function collectionPathOf({ type, shard, cluster }: MixedObject): string {
  return collectionPath(type, shard, cluster);
}

export async function witnessJob(job: WitnessJob, line: Line): Promise<Witnessed> {
  const seen: Seen = { events: [], others: 0 };
  const witnesses = Array.from({ length: job.watchers }, () => new Witness(job, seen));
  try {
    await Promise.all(witnesses.map((witness) => witness.open()));
    line.ready();
    const failed = witnesses.map((witness) => witness.ended);
    const expected = await Promise.race([line.received, ...failed]);
    const deadline = wallClock() + job.lateMsMax;
    while (witnesses.some((witness) => witness.seen < expected) && wallClock() < deadline) await Promise.race([sleep(pollMs), ...failed]);
    return {
      indexes: Int32Array.from(seen.events, ({ index }) => index),
      rounds: Int32Array.from(seen.events, ({ round }) => round),
      seenAt: Float64Array.from(seen.events, ({ seenAt }) => seenAt),
      others: seen.others,
    };
  } finally {
    for (const witness of witnesses) witness.close();
  }
}

type Seen = { readonly events: { index: number; round: number; seenAt: number }[]; others: number };

/** One watch. `ended` never resolves; it rejects when the watch ends. */
class Witness {
  readonly #job: WitnessJob;
  readonly #client: Client;
  readonly #scanner: EventScanner;
  seen = 0;
  ended: Promise<never> = new Promise(() => {});

  constructor(job: WitnessJob, all: Seen) {
    this.#job = job;
    this.#client = new Client(job.target, job.protocol);
    const mark = Buffer.from(`"kcp.io/shard":"${job.shard}"`);
    this.#scanner = new EventScanner((event) => {
      const type = typeOf(event);
      if (type === 'ERROR') throw new Error(`a watch was ended: ${shown(event)}`);
      if (type === 'BOOKMARK') return;
      const at = event.bytes.indexOf(mark, event.start);
      if (at === -1 || at >= event.end) {
        all.others += 1;
        return;
      }
      all.events.push({ index: indexIn(event), round: roundIn(event), seenAt: wallClock() });
      this.seen += 1;
    });
  }

  async open(): Promise<void> {
    const answer = await this.#client.get(`${this.#job.path}?watch=true&timeoutSeconds=600&resourceVersion=${this.#job.resourceVersion}`);
    if (answer.status !== ok) throw new Error(`a watch was answered ${answer.status}`);
    this.ended = answer
      .read((chunk) => this.#scanner.push(chunk))
      .then(() => {
        throw new Error('the server ended a watch');
      });
    this.ended.catch(() => {});
  }

  close(): void {
    this.#client.close();
  }
}
