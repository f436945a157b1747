/**
 * Writes over HTTP to one object take turns, in order of arrival. Each write reads the object that
 * the previous one stored, so no write overtakes another.
 *
 *   patch a ─▶ read, patch, commit ─┐
 *   patch b ─────── waits ──────────┴▶ read, patch, commit ─┐
 *   delete  ─────── waits ──────────────────────────────────┴▶ …
 *
 * Pushers and other servers of the store take no turns, so they may change the object in between.
 *
 * Bound: every waiting write is an admitted request (`requestsInFlightMax`; further requests get
 * 429). A waiting write leaves the line when its request ends.
 */
import { formatKey, type Key } from '../../domain/key.js';
import { Refused, type Refusal } from '../../domain/errors.js';
import type { Asker } from '../../domain/write-request.js';

export class ObjectTurns {
  /**
   * Keyed by shard and client key while a write has its turn. Each callback starts a waiting write.
   */
  readonly #lines = new Map<string, Set<() => void>>();

  /** Runs `decide` in its turn. Throws Refused if the request ends earlier. */
  async run<T>(key: Key, asker: Asker, decide: () => Promise<T>): Promise<T> {
    const line = formatKey(key);
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

export function assertAwaited({ isEnded }: Asker): void {
  if (isEnded) throw new Refused(abandoned);
}

const abandoned: Refusal = { reason: 'Timeout', message: 'the request ended before the server decided its write' };
