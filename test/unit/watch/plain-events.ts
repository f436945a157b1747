/** A representation that writes each event as one JSON line, and its inverse. */
import { labelsOf } from '../../../src/domain/object-metadata.js';
import type { Key } from '../../../src/domain/key.js';
import type { OpenWatch, Representation } from '../../../src/domain/ports.js';
import type { SeenEvent } from '../../support/watch-history.js';

type Line = Readonly<{ type: SeenEvent['type']; key?: string; at: string; labels?: Record<string, string>; end?: boolean; code?: number }>;

export type Counted = Representation & { encoded: number };

/** `encoded` counts calls of the encoder, not events. */
export function plainEvents(id = 'plain'): Counted {
  const representation: Counted = {
    id,
    encoded: 0,
    events: (items) => {
      representation.encoded += 1;
      return bytesOf(
        items.map(({ type, object, resourceVersion }) => ({
          type,
          key: keyText(object.key),
          at: resourceVersion,
          labels: Object.fromEntries(labelsOf(object.body)),
        })),
      );
    },
    forgotten: (keys, at) => bytesOf(keys.map((key) => ({ type: 'DELETED', key: keyText(key), at }))),
    bookmark: (at, end) => bytesOf([{ type: 'BOOKMARK', at, end }]),
    error: ({ reason }) => bytesOf([{ type: 'ERROR', at: '0', code: reason === 'Expired' ? 410 : 500 }]),
  };
  return representation;
}

export function keyText({ shard, cluster, namespace, name }: Key): string {
  return [shard, cluster, namespace, name].join('|');
}

function eventsIn(bytes: Uint8Array): readonly SeenEvent[] {
  return Buffer.from(bytes)
    .toString()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const { type, key = '', at, labels = {}, end = false, code } = JSON.parse(line) as Line;
      return { type, key, position: BigInt(at), labels, initialEventsEnd: end, ...(code === undefined ? {} : { code }) };
    });
}

/** `ADDED one@3`, `BOOKMARK@7`, `BOOKMARK@7!` for the annotated one, `ERROR 410`. */
export function received(events: readonly SeenEvent[]): readonly string[] {
  return events.map(({ type, key, position, initialEventsEnd, code }) => {
    if (type === 'ERROR') return `ERROR ${code}`;
    const name = key.split('|').at(-1) ?? '';
    return `${type}${name === '' ? '' : ` ${name}`}@${position}${initialEventsEnd ? '!' : ''}`;
  });
}

/** A client of an open watch: it reads when the test says so, and records what it saw. */
export class Reader {
  readonly events: SeenEvent[] = [];
  readonly buffers: Uint8Array[] = [];
  readonly #iterator: AsyncIterator<readonly Uint8Array[]>;
  #pending: Promise<IteratorResult<readonly Uint8Array[]>> | undefined;
  ended = false;

  constructor(watch: OpenWatch) {
    this.#iterator = watch[Symbol.asyncIterator]();
  }

  /** Asks for the next batch, and takes it if it arrives within some turns of the event loop. */
  async step(): Promise<boolean> {
    this.#pending ??= this.#iterator.next();
    const next = await Promise.race([this.#pending, turns(20)]);
    if (next === undefined) return false;
    this.#pending = undefined;
    if (next.done === true) {
      this.ended = true;
      return false;
    }
    this.take(next.value);
    return true;
  }

  take(pieces: readonly Uint8Array[]): void {
    for (const bytes of pieces) {
      this.buffers.push(bytes);
      this.events.push(...eventsIn(bytes));
    }
  }

  /** Reads until nothing more arrives. */
  async drain(): Promise<readonly string[]> {
    while (await this.step());
    return received(this.events);
  }

  async leave(): Promise<void> {
    await this.#iterator.return?.();
  }
}

/** Lets everything that is ready run. */
export async function turns(count: number): Promise<undefined> {
  for (let i = 0; i < count; i++) await new Promise<void>((resolve) => setImmediate(resolve));
  return undefined;
}

function bytesOf(lines: readonly Line[]): Uint8Array {
  return Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}
