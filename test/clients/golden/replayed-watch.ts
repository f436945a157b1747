/**
 * Opens one recorded watch again and compares its events with the recorded ones. Events that
 * correspond give pairs of versions.
 *
 * It compares the initial events as a set, then what happened to each object, in order, each event
 * with a digest of the content. Only the order for each object counts, because concurrent requests
 * may be committed in another order than in the recording. A MODIFIED that does not change the
 * content is left out. On create the recorded server adds a managedFields entry, which kcp's next
 * PUT removes. For Strata that PUT changes nothing.
 */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeClient, KubeObject, WatchEvent } from '../../support/kube-client.js';
import { keyOf, seenEvent, type SeenEvent, type SeenWatch } from '../../support/watch-history.js';
import { typeOf, type Recorded } from './recording.js';
import { sortedText } from './transcript.js';
import type { RecordedPairs } from './recorded-pairs.js';

const eventsMsMax = 3_000;
const pollMs = 5;

type PlainEvent = Pick<WatchEvent, 'type' | 'object'>;

/** An event with a digest of its object's content. */
type ReceivedEvent = PlainEvent & Readonly<{ key: string; digest: string }>;

export class ReplayedWatch {
  readonly recorded: Recorded;
  readonly type: string;
  readonly endsAt: number;
  readonly events: SeenEvent[] = [];
  readonly expectsInitialEvents: boolean;
  readonly #began: SeenWatch['began'];
  readonly #want: readonly ReceivedEvent[];
  readonly #got: ReceivedEvent[] = [];
  /** Recorded events without a pair yet, by object and event. */
  readonly #unpaired = new Map<string, ReceivedEvent[]>();
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
      .map((line) => received(JSON.parse(line) as PlainEvent));
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

  /** Whether all recorded events have arrived. */
  hasAll(): boolean {
    return this.differences().length === 0;
  }

  async until(condition: () => boolean): Promise<void> {
    for (const deadline = performance.now() + eventsMsMax; !condition() && this.#failure === undefined && performance.now() < deadline;)
      await sleep(pollMs);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#reading;
  }

  /**
   * Compares initial events as a set, then the events of each object in order. The server may send
   * bookmarks in between as it likes.
   */
  differences(): readonly Readonly<{ what: string; want: string; got: string }>[] {
    const [want, got] = [story(this.#want), story(this.#got)];
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
      const ours = received(event);
      this.#got.push(ours);
      const recorded = this.#unpaired.get(idOf(ours))?.shift();
      if (recorded !== undefined) pairs.learn(recorded.object, event.object);
    }
  }
}

function story(events: readonly ReceivedEvent[]): ReadonlyMap<string, string> {
  const end = events.findIndex(endsInitialEvents);
  const [initial, live] = [events.slice(0, end + 1), events.slice(end + 1).filter(({ type }) => type !== 'BOOKMARK')];
  const contents = new Map(initial.map(({ key, digest }) => [key, digest]));
  const stories = new Map<string, string>();
  if (end >= 0) {
    const set = initial.slice(0, end).map(({ type, key, digest }) => `${type} ${key} ${digest}`);
    stories.set('initial events', set.toSorted().join(', '));
  }
  for (const { type, key, digest } of live) {
    const isUnchanged = type === 'MODIFIED' && contents.get(key) === digest;
    contents.set(key, digest);
    if (!isUnchanged) stories.set(`events of ${key}`, `${stories.get(`events of ${key}`) ?? ''}${type} ${digest} `);
  }
  return stories;
}

function received(event: PlainEvent): ReceivedEvent {
  return {
    ...event,
    key: event.type === 'BOOKMARK' ? '' : keyOf(event.object),
    digest: event.type === 'BOOKMARK' ? '' : digestOf(event.object),
  };
}

/** The content of an object, without what either server adds. */
function digestOf({ metadata, ...rest }: KubeObject): string {
  const {
    resourceVersion: _version,
    managedFields: _fields,
    generation: _generation,
    uid: _uid,
    creationTimestamp: _time,
    ...kept
  } = metadata;
  return createHash('sha256')
    .update(sortedText({ ...rest, metadata: kept }))
    .digest('hex')
    .slice(0, 8);
}

/** Two events with the same id give a pair of versions; a recorded event may have no partner. */
function idOf({ type, key, digest, object }: ReceivedEvent): string {
  return `${type} ${key} ${digest} ${endsInitialEvents({ object })}`;
}

function endsInitialEvents({ object }: Pick<PlainEvent, 'object'>): boolean {
  return object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true';
}
