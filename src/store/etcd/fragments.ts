/**
 * The events of a watch, which etcd may send in pieces: a piece may end in the middle of a revision, and the rest comes with the next.
 *
 * Bound: `replacedBytesMax` of what changes have replaced, while more of their revision is to come. A range delete may have replaced any number of bytes: beyond the
 * bound they are dropped, and watches that need them get 410. What one revision has put is bounded by etcd's --max-request-bytes.
 */
import type { WatchEvent } from './rpc.js';

export class Fragments {
  readonly #replacedBytesMax: number;
  #events: WatchEvent[] = [];

  constructor(replacedBytesMax: number) {
    this.#replacedBytesMax = replacedBytesMax;
  }

  /** The events of all revisions that are whole by now. */
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

/** How many events are of revisions that do not go on in the next piece. */
function wholeIn(events: readonly WatchEvent[]): number {
  const last = events.at(-1)?.kv.revision;
  return events.filter(({ kv }) => kv.revision !== last).length;
}

/** Shares no memory with the message that it came in. */
function withoutPrevious({ kind, kv }: WatchEvent): WatchEvent {
  return { kind, kv: { ...kv, key: Uint8Array.from(kv.key), value: Uint8Array.from(kv.value) }, previous: undefined };
}
