/**
 * Measures how late each cache is behind another while somebody keeps writing. The test compares
 * the caches again and again. A difference lasts while both sides stay unchanged; a side that
 * changes is being written.
 *
 * For each shard, kcp writes to its cache five times a second (client-go's default), even many
 * seconds after a test has stopped. So caches that are read one after the other always differ
 * somewhere, however fast their links are.
 */
type Late = Readonly<{ difference: string; atLeastMs: number; atMostMs: number }>;

type Look = Readonly<{ beganMs: number; endedMs: number }>;

export class Lateness {
  /** The comparison that first saw each difference which every comparison since has seen. */
  #since = new Map<string, Look>();
  #last: Look | undefined;
  #latest: Late = { difference: 'none', atLeastMs: 0, atMostMs: 0 };

  /** Records one comparison, which found these differences. Its times are of a monotonic clock. */
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
   * The difference that lasted longest. `atLeastMs`: from the end of the first comparison that saw
   * it to the start of the last that did. `atMostMs`: from the start of the first comparison that
   * saw it to the end of the first that did not.
   */
  get latest(): Late {
    return this.#latest;
  }
}
