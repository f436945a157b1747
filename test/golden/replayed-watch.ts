/**
 * One recorded watch, opened again: what came beside what was recorded, and the pairs of versions both tell.
 *
 * Told apart are the initial events, as a set, and behind them what happened to each object, in order: requests that
 * were under way at the same time may be committed in another order than when they were recorded.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeClient, WatchEvent } from '../support/kube-client.js';
import { keyOf, seenEvent, type SeenEvent, type SeenWatch } from '../support/watch-history.js';
import { typeOf, type Recorded } from './recording.js';
import type { RecordedPairs } from './recorded-pairs.js';

const eventsMsMax = 3_000;
const pollMs = 5;

type RecordedEvent = Pick<WatchEvent, 'type' | 'object'>;

export class ReplayedWatch {
  readonly recorded: Recorded;
  readonly type: string;
  readonly endsAt: number;
  readonly events: SeenEvent[] = [];
  readonly expectsInitialEvents: boolean;
  readonly #began: SeenWatch['began'];
  readonly #want: readonly RecordedEvent[];
  /** Recorded events that none of ours has been paired with, by what happened to which object. */
  readonly #unpaired = new Map<string, RecordedEvent[]>();
  readonly #stop = new AbortController();
  readonly #reading: Promise<void>;
  #failure: unknown;

  constructor(client: KubeClient, recorded: Recorded, pairs: RecordedPairs) {
    this.recorded = recorded;
    this.type = typeOf(recorded);
    this.endsAt = recorded.t + recorded.ms;
    this.#want = (recorded.chunks ?? [])
      .map(([, bytes]) => bytes)
      .join('')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as RecordedEvent);
    for (const event of this.#want) this.#unpaired.set(idOf(event), [...(this.#unpaired.get(idOf(event)) ?? []), event]);

    const url = pairs.translateUrl(recorded.url);
    const { 'accept-encoding': _compressed, ...headers } = recorded.headers;
    const named = new URL(url, 'https://server').searchParams.get('resourceVersion');
    const isWatchList = url.includes('sendInitialEvents=true');
    this.#began = isWatchList
      ? { kind: 'initial', ...(named === null || named === '0' ? {} : { named: BigInt(named) }) }
      : { kind: 'behind', position: BigInt(named ?? '0') };
    this.expectsInitialEvents = isWatchList && this.#want.some(endsInitialEvents);
    this.#reading = this.#read(client, url, headers, pairs).catch((error: unknown) => void (this.#failure = error));
  }

  get initialEventsEnded(): boolean {
    return this.events.some((event) => event.initialEventsEnd);
  }

  /** Whether every recorded event has come, as far as kinds and objects tell. */
  hasAll(): boolean {
    return [...this.#unpaired.values()].every((left) => left.length === 0);
  }

  async until(condition: () => boolean): Promise<void> {
    for (const deadline = performance.now() + eventsMsMax; !condition() && this.#failure === undefined && performance.now() < deadline;)
      await sleep(pollMs);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#reading;
  }

  /** Initial events as a set; then, per object, what happened to it in order. Bookmarks in between are the server's own affair. */
  differences(): readonly Readonly<{ what: string; want: string; got: string }>[] {
    const want = story(
      this.#want.map((event) => ({
        type: event.type,
        key: event.type === 'BOOKMARK' ? '' : keyOf(event.object),
        initialEventsEnd: endsInitialEvents(event),
      })),
    );
    const got = story(this.events);
    const failed = this.#failure === undefined ? [] : [{ what: 'stream', want: 'open', got: String(this.#failure) }];
    return [
      ...failed,
      ...[...new Set([...want.keys(), ...got.keys()])]
        .map((what) => ({ what, want: want.get(what) ?? '', got: got.get(what) ?? '' }))
        .filter((each) => each.want !== each.got),
    ];
  }

  seen(): SeenWatch {
    return { id: `watch ${this.recorded.id}`, began: this.#began, events: this.events, covers: () => true };
  }

  async #read(client: KubeClient, url: string, headers: Readonly<Record<string, string>>, pairs: RecordedPairs): Promise<void> {
    for await (const event of client.watch(url, { headers, signal: this.#stop.signal })) {
      this.events.push(seenEvent(event));
      const recorded = this.#unpaired.get(idOf(event))?.shift();
      if (recorded !== undefined) pairs.learn(recorded.object, event.object);
    }
  }
}

function story(events: readonly Pick<SeenEvent, 'type' | 'key' | 'initialEventsEnd'>[]): ReadonlyMap<string, string> {
  const end = events.findIndex((event) => event.initialEventsEnd);
  const told = new Map<string, string>();
  if (end >= 0)
    told.set(
      'initial events',
      events
        .slice(0, end)
        .map(({ type, key }) => `${type} ${key}`)
        .toSorted()
        .join(', '),
    );
  for (const { type, key } of events.slice(end + 1))
    if (type !== 'BOOKMARK') told.set(`events of ${key}`, `${told.get(`events of ${key}`) ?? ''}${type} `);
  return told;
}

function idOf(event: RecordedEvent): string {
  return event.type === 'BOOKMARK' ? `BOOKMARK ${endsInitialEvents(event)}` : `${event.type} ${keyOf(event.object)}`;
}

function endsInitialEvents(event: RecordedEvent): boolean {
  return event.object?.metadata?.annotations?.['k8s.io/initial-events-end'] === 'true';
}
