/**
 * One recorded shard that a sender pushes into its cache over a websocket, as the shard's agent
 * would.
 */
import { openSender, type ClientIdentity } from '../../src/client.js';
import { systemClock } from '../../src/clock.js';
import { createLog } from '../../src/diagnostics/log.js';
import { formatSlice } from '../../src/domain/slice.js';
import { readRecorded, recordedSources, type RecordedSlice } from './recorded-source.js';
import type { RecordedObject } from './recorded-shards.js';

export type PushedShardOptions = Readonly<{ shard: string; url: string; identity: ClientIdentity; objects: readonly RecordedObject[] }>;

export class PushedShard {
  readonly shard: string;
  /** How long it took until every object was durable, in milliseconds. */
  readonly syncedMs: number;
  readonly types: number;
  readonly objects: number;
  readonly #sources: readonly RecordedSlice[];
  readonly #stopping: AbortController;
  readonly #ended: Promise<unknown>;

  private constructor(
    shard: string,
    sources: readonly RecordedSlice[],
    running: Readonly<{ stopping: AbortController; ended: Promise<unknown> }>,
    synced: Readonly<{ syncedMs: number; objects: number }>,
  ) {
    this.shard = shard;
    this.#sources = sources;
    this.#stopping = running.stopping;
    this.#ended = running.ended;
    this.types = sources.length;
    this.syncedMs = synced.syncedMs;
    this.objects = synced.objects;
  }

  /**
   * Resolves when every object of the shard is durable in the cache; throws when the cache refuses
   * an object or the sender.
   */
  static async open({ shard, url, identity, objects }: PushedShardOptions, signal: AbortSignal): Promise<PushedShard> {
    // A demo stops caches on purpose and reports that itself, so the sender logs only errors.
    const log = createLog({ clock: systemClock, stream: process.stderr }, { level: 'error', format: 'pretty' });
    const startedMs = systemClock.now();
    const sender = openSender({ shard, caches: [url], identity, agent: 'demo', log });
    const sources = recordedSources(shard, objects);
    for (const { slice, source } of sources) sender.add(slice, source);
    const stopping = new AbortController();
    const ended = sender.run(stopping.signal);
    try {
      for await (const { slices, refused } of sender.states(signal)) {
        if (refused > 0) throw new Error(`${refused} objects of ${shard} were refused`);
        if (slices.every(({ phase }) => phase === 'synced')) {
          const count = objects.filter((object) => object.shard === shard).length;
          return new PushedShard(shard, sources, { stopping, ended }, { syncedMs: systemClock.now() - startedMs, objects: count });
        }
      }
      throw new Error(`${shard} was not synced: ${JSON.stringify(sender.state.connection)}`);
    } catch (error) {
      stopping.abort();
      await ended;
      throw error;
    }
  }

  /** Pushes a new version of an object whose type this shard had from the start. */
  change(recorded: RecordedObject): void {
    const { slice, received } = readRecorded(recorded);
    const source = this.#sources.find((known) => formatSlice(known.slice) === formatSlice(slice))?.source;
    if (source === undefined) throw new Error(`${formatSlice(slice)} is not pushed`);
    source.put(received);
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#ended;
  }
}
