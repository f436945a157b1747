/**
 * Replays a recorded conversation of kcp with its own cache server against a server under test, and
 * checks every answer.
 *
 *   recorded   POST → 201 rv 80   WATCHLIST ⇒ …BOOKMARK 80   PUT rv 80 → 200 rv 91   WATCH rv=91
 *   replayed   POST → 201 rv r1   WATCHLIST ⇒ …BOOKMARK r1   PUT rv r1 → 200 rv r2   WATCH rv=r2
 *
 * Requests keep their order, and each waits for the answer to the one before. Watches stay open as
 * long as the recorded ones. The replay replaces a recorded resourceVersion or uid in a request by
 * the server's own: each answer and each watch event gives a pair. A version without a pair is
 * mapped as the nearest smaller one.
 *
 * The replay compares the status and essence of each answer. Of each watch it compares the events:
 * initial events as a set, the rest in order for each object. It checks the guarantees of
 * docs/guarantees.md for each type. The truth for that are the answers to writes and, for
 * deletions, one watch for each type. replay.exceptions.json lists what may differ, each with a
 * reason.
 */
import { readFile } from 'node:fs/promises';
import type { KubeClient, KubeObject } from '../../support/kube-client.js';
import { parse } from '../../support/kube-client.js';
import { projectFile } from '../../support/project.js';
import { validate, type Violation } from '../../support/validators.js';
import { isWatch, typeOf, type Recorded } from './recording.js';
import { RecordedPairs } from './recorded-pairs.js';
import { ReplayedTruth } from './replayed-truth.js';
import { ReplayedWatch } from './replayed-watch.js';
import { essence, sortedText, type AnswerBody } from './transcript.js';

/**
 * Members of the essence that may differ, in one recorded request or in all of a type (`resource`).
 * An exception without `members` skips the request, because it depended on a state that only the
 * recorded server had.
 */
export type Exception = Readonly<{ file: string; because: string; id?: number; resource?: string; members?: readonly string[] }>;

export type Finding = Readonly<{ id: number; what: string; want: string; got: string; exception?: Exception }>;

export type ReplayResult = Readonly<{
  requests: number;
  watches: number;
  events: number;
  findings: readonly Finding[];
  violations: readonly Violation[];
  unusedExceptions: readonly Exception[];
}>;

export async function readExceptions(): Promise<readonly Exception[]> {
  return JSON.parse(await readFile(projectFile('test', 'clients', 'golden', 'replay.exceptions.json'), 'utf8')) as Exception[];
}

/** Replays the whole recording. `exceptions`: those of this recording. */
export async function replay(client: KubeClient, recording: readonly Recorded[], exceptions: readonly Exception[]): Promise<ReplayResult> {
  const replaying = new Replay(client, exceptions);
  await replaying.watchTruth(recording);
  for (const request of recording) await replaying.play(request);
  return await replaying.finish();
}

class Replay {
  readonly #client: KubeClient;
  readonly #exceptions: readonly Exception[];
  readonly #used = new Set<Exception>();
  readonly #pairs = new RecordedPairs();
  readonly #truth = new Map<string, ReplayedTruth>();
  readonly #open = new Set<ReplayedWatch>();
  readonly #closed: ReplayedWatch[] = [];
  readonly #findings: Finding[] = [];
  #requests = 0;

  constructor(client: KubeClient, exceptions: readonly Exception[]) {
    this.#client = client;
    this.#exceptions = exceptions;
  }

  /**
   * Before the first request, opens a watch of all objects of each built-in type that the recording
   * watches.
   */
  async watchTruth(recording: readonly Recorded[]): Promise<void> {
    const types = new Set(recording.filter(isWatch).map(typeOf));
    for (const type of types) this.#truth.set(type, await ReplayedTruth.begin(this.#client, type));
  }

  async play(recorded: Recorded): Promise<void> {
    await this.#closeUntil(recorded.t);
    if (isWatch(recorded)) return await this.#openWatch(recorded);

    const omission = this.#exceptions.find(({ id, members }) => id === recorded.id && members === undefined);
    if (omission !== undefined) return void this.#used.add(omission);

    this.#requests += 1;
    const { 'accept-encoding': _compressed, 'content-length': _length, ...headers } = recorded.headers;
    const answer = await this.#client.raw(recorded.method, this.#pairs.translateUrl(recorded.url), {
      headers,
      ...(recorded.body === undefined ? {} : { body: this.#pairs.translateBody(recorded.body) }),
    });
    const [want, got] = [parse(recorded.answer ?? '') as AnswerBody | undefined, parse(answer.text) as AnswerBody | undefined];
    this.#compare(recorded, 'status', String(recorded.status), String(answer.status));
    if (recorded.status === answer.status) {
      this.#compareEssence(
        recorded,
        replicaEssence({ status: recorded.status, type: recorded.contentType, answer: want }),
        replicaEssence({ status: answer.status, type: answer.headers['content-type'], answer: got }),
      );
    }

    this.#pairs.learn(want, got);
    const isPut = (recorded.method === 'POST' || recorded.method === 'PUT') && answer.status < 300;
    if (isPut) this.#truth.get(typeOf(recorded))?.put(got as KubeObject);
  }

  async finish(): Promise<ReplayResult> {
    await this.#closeUntil(Infinity);
    const violations: Violation[] = [];
    for (const [type, truth] of this.#truth) {
      const watches = this.#closed.filter((watch) => watch.type === type).map((watch) => watch.seen());
      violations.push(
        ...validate({ truth: await truth.close(), watches, lists: [] }).map((found) => ({ ...found, watch: `${found.watch} (${type})` })),
      );
    }
    return {
      requests: this.#requests,
      watches: this.#closed.length,
      events: this.#closed.reduce((sum, watch) => sum + watch.events.length, 0),
      findings: this.#findings,
      violations,
      unusedExceptions: this.#exceptions.filter((exception) => !this.#used.has(exception)),
    };
  }

  async #openWatch(recorded: Recorded): Promise<void> {
    const watch = new ReplayedWatch(this.#client, recorded, this.#pairs);
    this.#open.add(watch);
    if (watch.expectsInitialEvents) await watch.until(() => watch.initialEventsEnded);
  }

  async #closeUntil(t: number): Promise<void> {
    const due = [...this.#open].filter((watch) => watch.endsAt <= t);
    for (const watch of due) {
      await watch.until(() => watch.hasAll());
      await watch.close();
      this.#open.delete(watch);
      this.#closed.push(watch);
      for (const { what, want, got } of watch.differences()) this.#compare(watch.recorded, what, want, got);
    }
  }

  #compareEssence(recorded: Recorded, want: Readonly<Record<string, unknown>>, got: Readonly<Record<string, unknown>>): void {
    for (const member of new Set([...Object.keys(want), ...Object.keys(got)]))
      this.#compare(recorded, member, sortedText(want[member]), sortedText(got[member]));
  }

  #compare(recorded: Recorded, what: string, want: string, got: string): void {
    if (want === got) return;
    const exception = this.#exceptions.find((candidate) => allows(candidate, recorded, what));
    if (exception !== undefined) this.#used.add(exception);
    this.#findings.push({
      id: recorded.id,
      what: `${recorded.method} ${recorded.url}: ${what}`,
      want,
      got,
      ...(exception === undefined ? {} : { exception }),
    });
  }
}

/** Whether the exception covers this difference. */
function allows(exception: Exception, recorded: Recorded, what: string): boolean {
  return (
    (exception.id === undefined || exception.id === recorded.id) &&
    (exception.resource === undefined || typeOf(recorded).endsWith(`/${exception.resource}`)) &&
    exception.members?.includes(what) === true
  );
}

/** Essence plus annotations, by which kcp finds out what it must write again. */
function replicaEssence(step: Readonly<{ status: number; type: string | undefined; answer: unknown }>): Readonly<Record<string, unknown>> {
  const annotations = (step.answer as AnswerBody | undefined)?.metadata?.annotations;
  const { type, ...rest } = step;
  return { ...essence({ ...rest, ...(type === undefined ? {} : { type }) }), ...(annotations === undefined ? {} : { annotations }) };
}
