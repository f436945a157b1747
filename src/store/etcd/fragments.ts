/**
 * Collects the events of a watch into whole revisions. etcd may split a response into fragments,
 * even within a revision.
 *
 * Bound: at most `replacedBytesMax` of replaced values wait for the rest of their revision. If a
 * range delete exceeds that bound, these values are dropped, and watches that need them get 410.
 * What one revision puts is bounded by etcd's --max-request-bytes.
 */
import type { WatchEvent } from './rpc.js';

export class Fragments {
  readonly #replacedBytesMax: number;
  #events: WatchEvent[] = [];

  constructor(replacedBytesMax: number) {
    this.#replacedBytesMax = replacedBytesMax;
  }

  /** Returns the events of all revisions that are now complete. */
  add(events: readonly WatchEvent[], isFragment: boolean): readonly WatchEvent[] {
    for (const event of events) this.#events.push(event);
    const whole = this.#events.splice(0, isFragment ? wholeIn(this.#events) : this.#events.length);
    let replacedBytes = 0;
    for (const { previous } of this.#events) replacedBytes += previous?.value.length ?? 0;
    if (replacedBytes > this.#replacedBytesMax) this.#events = this.#events.map(withoutPrevious);
    return whole;
  }

  clear(): void {
    this.#events = [];
  }
}

/** The number of events whose revision cannot continue in the next fragment. */
function wholeIn(events: readonly WatchEvent[]): number {
  const last = events.at(-1)?.kv.revision;
  return events.filter(({ kv }) => kv.revision !== last).length;
}

/** A copy that shares no memory with the message of the event. */
function withoutPrevious({ kind, kv }: WatchEvent): WatchEvent {
  return { kind, kv: { ...kv, key: Uint8Array.from(kv.key), value: Uint8Array.from(kv.value) }, previous: undefined };
}
