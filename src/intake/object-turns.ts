/**
 * Writes of one object take turns in the order in which they came. Each is decided on what the one before it has stored, so none of them overtakes another.
 *
 *   patch a ─▶ read, patch, commit ─┐
 *   patch b ─────── waits ──────────┴▶ read, patch, commit ─┐
 *   delete  ─────── waits ──────────────────────────────────┴▶ …
 *
 * What else changes the object, a pusher or another server of the store, waits for nobody here.
 *
 * Bound: every write that waits is a request that was admitted (`requestsInFlightMax`; beyond it 429). It leaves the line when its request ends.
 */
import { formatClientKey, type Key } from '../domain/key.js';
import { Refused, type Refusal } from '../domain/errors.js';
import type { Asker } from '../domain/write-request.js';

export class ObjectTurns {
  /** By the text of a key, while a write of it has its turn: what lets in each of those that wait. */
  readonly #lines = new Map<string, Set<() => void>>();

  /** Runs `decide` once its turn has come. Throws Refused if nobody waits for it any more by then. */
  async run<T>(key: Key, asker: Asker, decide: () => Promise<T>): Promise<T> {
    const line = `${key.shard}|${formatClientKey(key)}`;
    await this.#enter(line, asker);
    try {
      return await decide();
    } finally {
      this.#leave(line);
    }
  }

  async #enter(line: string, asker: Asker): Promise<void> {
    assertAwaited(asker);
    const waiting = this.#lines.get(line);
    if (waiting === undefined) {
      this.#lines.set(line, new Set());
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const enter = (): void => {
        waiting.delete(enter);
        stay();
        resolve();
      };
      waiting.add(enter);
      const stay = asker.onEnd(() => {
        waiting.delete(enter);
        reject(new Refused(abandoned));
      });
    });
  }

  #leave(line: string): void {
    const [next] = this.#lines.get(line) ?? [];
    if (next === undefined) this.#lines.delete(line);
    else next();
  }
}

/** Throws Refused if nobody waits for the answer any more. */
export function assertAwaited({ isEnded }: Asker): void {
  if (isEnded) throw new Refused(abandoned);
}

const abandoned: Refusal = { reason: 'Timeout', message: 'the request has ended before it was decided' };
