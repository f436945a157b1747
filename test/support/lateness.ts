/**
 * How late caches are, one behind the other, while somebody goes on writing. The test compares them again and again. A difference lasts as long as
 * both sides stay what they were: a side that changes is just being written.
 *
 * kcp writes to its cache five times a second for each shard (client-go's default), also many seconds after a test has stopped. So caches that
 * are read one after the other always differ somewhere, however fast their links are.
 */
type Late = Readonly<{ difference: string; atLeastMs: number; atMostMs: number }>;

type Look = Readonly<{ beganMs: number; endedMs: number }>;

export class Lateness {
  /** The look that saw each difference first, in an unbroken row of looks. */
  #since = new Map<string, Look>();
  #last: Look | undefined;
  #latest: Late = { difference: 'none', atLeastMs: 0, atMostMs: 0 };

  /** One look, which found these differences; by a monotonic clock. */
  see(differences: readonly string[], look: Look): void {
    const { beganMs: lastMs } = this.#last ?? look;
    const before = this.#since;
    this.#last = look;
    this.#since = new Map(differences.map((difference) => [difference, before.get(difference) ?? look]));
    for (const [difference, first] of before) {
      const atLeastMs = Math.max(0, (this.#since.has(difference) ? look.beganMs : lastMs) - first.endedMs);
      if (atLeastMs >= this.#latest.atLeastMs) this.#latest = { difference, atLeastMs, atMostMs: look.endedMs - first.beganMs };
    }
  }

  /**
   * The longest difference. `atLeastMs`: from the end of the look that saw it first to the start of the last that did. `atMostMs`: from the start
   * of the look that saw it first to the end of the first one that no longer did.
   */
  get latest(): Late {
    return this.#latest;
  }
}
