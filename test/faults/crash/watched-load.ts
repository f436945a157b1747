/**
 * HTTP writers, pushers and informers of a server that dies again and again. After each life this
 * checks what they were answered and sent. Every acknowledged write is there (G1). No version falls
 * or is used twice (G9). Every informer goes on without a gap, a repeat or a 410 (G2 … G8).
 */
import type { ExecutionContext } from 'ava';
import { LongWatch } from '../../support/machines/long-watch.js';
import { RollingHistory } from '../../support/machines/rolling-history.js';
import type { KubeClient } from '../../support/kube-client.js';
import { until } from '../../support/test-server.js';
import { validate } from '../../support/validators.js';
import { positionOf, seenList, type Covered, type Sighting } from '../../support/watch-history.js';
import type { PushTarget } from '../../support/raw-pusher.js';
import { PushingWriter } from './pushing-writer.js';
import { seeded } from '../../support/crash/random.js';
import { collectionPath, wildcardPath, Writer } from '../../support/crash/writers.js';

/** `tolerated`: HTTP codes of answers that leave open whether a write happened. */
export type LoadedServer = PushTarget &
  Readonly<{ client: (options?: Readonly<{ http2?: boolean }>) => KubeClient; tolerated?: readonly number[] }>;

const writersMax = 8;
const comesBackMsMax = 15_000;

const everything: Covered = { covers: () => true };
const red: Covered = { covers: () => true, selects: ({ labels }) => labels['colour'] === 'red' };
const cedar: Covered = { covers: (key) => key.startsWith('cedar|') };

export class WatchedLoad {
  readonly #t: ExecutionContext;
  readonly #client: KubeClient;
  readonly #writers: readonly Writer[];
  readonly #pushers: readonly PushingWriter[];
  readonly #full: LongWatch;
  readonly #informers: readonly LongWatch[];
  readonly #history: RollingHistory;
  readonly #sightings: Sighting[] = [];
  #rounds = 0;
  acknowledged = 0;

  private constructor(t: ExecutionContext, server: LoadedServer, { seed, position }: Readonly<{ seed: number; position: bigint }>) {
    const clients = [server.client({ http2: false }), server.client({ http2: true })] as const;
    this.#t = t;
    this.#client = clients[0];
    this.#writers = Array.from(
      { length: writersMax },
      (_, index) => new Writer(clients[index % 2]!, seeded(seed + index + 1), { index, places: 6, tolerated: server.tolerated ?? [] }),
    );
    this.#pushers = ['cedar', 'dogwood'].map((shard, index) => new PushingWriter(server, seeded(seed - index - 1), { shard, objects: 20 }));
    this.#full = new LongWatch(server.client({ http2: true }), { id: 'full', path: wildcardPath, position, covered: everything });
    const query = { labelSelector: 'colour=red' };
    const watches = [
      new LongWatch(server.client({ http2: false }), { id: 'all', path: wildcardPath, position, covered: everything }),
      new LongWatch(server.client({ http2: true }), { id: 'red', path: wildcardPath, query, position, covered: red }),
      new LongWatch(server.client({ http2: true }), { id: 'cedar', path: collectionPath('cedar', '%2A'), position, covered: cedar }),
    ];
    this.#informers = [this.#full, ...watches];
    this.#history = new RollingHistory(this.#full, watches);
  }

  /** Starts the informers. The server must hold none of the load's objects yet. */
  static async begin(t: ExecutionContext, server: LoadedServer, seed: number): Promise<WatchedLoad> {
    const position = positionOf(await server.client().list(wildcardPath));
    const load = new WatchedLoad(t, server, { seed, position });
    for (const informer of load.#informers) informer.come();
    t.teardown(() => Promise.all(load.#informers.map((informer) => informer.leave())));
    return load;
  }

  /** Writes until the server is gone, so that requests fail, or until the signal fires. */
  async write(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#writers.map((writer) => writer.run(signal)), ...this.#pushers.map((pusher) => pusher.run(signal))]);
  }

  /** Number of writes that were acknowledged since the last check. */
  get answered(): number {
    return [...this.#writers, ...this.#pushers].reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
  }

  /** Call this while nobody writes and the server is up again. */
  async check(round: string): Promise<void> {
    const [t, history, informers] = [this.#t, this.#history, this.#informers];
    this.#rounds += 1;
    const askedMs = performance.now();
    const list = await this.#client.list(wildcardPath);
    this.#sightings.push({ position: positionOf(list), askedMs, answeredMs: performance.now() });
    for (const writer of this.#writers) writer.lookAgain(list.items);
    history.list(seenList(`list ${round}`, list, everything));
    const answers = [...this.#writers, ...this.#pushers].flatMap((writer) => writer.acknowledged.splice(0));
    this.acknowledged += answers.length;
    // A pusher's unacknowledged changes may happen when it reconnects.
    const unanswered = this.#rounds * writersMax + this.#pushers.reduce((sum, pusher) => sum + pusher.unanswered, 0);
    history.answered(answers);
    const isUpToDate = (): boolean =>
      informers.every((informer) => informer.position >= positionOf(list) || informer.failure !== undefined);
    await until(isUpToDate, comesBackMsMax).catch(() => {});
    t.true(isUpToDate(), `${round}: an informer did not come back: ${informers.map((informer) => informer.position).join(' ')}`);
    t.deepEqual(
      informers.flatMap(({ failure }) => failure ?? []),
      [],
      round,
    );
    for (const { type, position: at, key, labels } of this.#full.events)
      if (type !== 'DELETED' && type !== 'BOOKMARK')
        this.#sightings.push({ position: at, what: `${key} ${labels['turn']}`, askedMs: 0, answeredMs: Infinity });
    for (const write of answers)
      if (write.kind === 'put' && write.position !== undefined)
        this.#sightings.push({ position: write.position, what: `${write.key} ${write.turn}`, askedMs: 0, answeredMs: askedMs });

    t.deepEqual(history.check().slice(0, 10), [], round);
    t.true(history.changes <= this.acknowledged + unanswered, `${round}: more changes than writes`);
  }

  /** After the last round: checks the versions of all answers together (G9). */
  finish(): void {
    this.#t.log(
      `${this.#rounds} rounds, ${this.acknowledged} acknowledged writes, ${this.#history.changes} changes, ${this.#history.events} events`,
    );
    this.#t.deepEqual(validate({ truth: [], watches: [], lists: [], sightings: this.#sightings }, ['G9']), []);
  }
}
