/**
 * An operator who removes a shard at one cache. He repeats the removal if that cache has forgotten
 * it, or hears of an older process, until a later process has the shard. He repeats it only a few
 * times, because a plain writer that goes on brings the shard back each time.
 */
import type { Term } from '../../src/domain/push.js';
import type { ShardName } from '../../src/domain/shard.js';
import type { PartyPlace, PlainParty } from './sim-party.js';

const againMax = 10;

export class SimRemoval implements PlainParty {
  readonly shard: ShardName;
  #term: Term = 0;
  /** The id of the cache at which the shard was removed. */
  origin = '';
  #isDone = false;
  #run = 0;
  /** Repeated removals since the cache started. */
  #again = 0;

  constructor(shard: ShardName) {
    this.shard = shard;
  }

  /** The removal keeps out all processes of the shard up to this term. */
  get term(): Term {
    return this.#term;
  }

  get isQuiet(): boolean {
    return this.#isDone;
  }

  async run(place: PartyPlace): Promise<void> {
    this.#run += 1;
    const run = this.#run;
    this.#again = 0;
    await this.#remove(place, run);
    place.store.state.follow(({ shards }) => {
      const isBack = shards.some((state) => state.shard === this.shard && !state.removed && state.term < this.#term);
      if (!isBack || run !== this.#run || this.#again === againMax) return;
      this.#again += 1;
      void this.#remove(place, run);
    });
  }

  async #remove({ store, clock }: PartyPlace, run: number): Promise<void> {
    const { shard } = this;
    const known = async () => [...store.state.shards].find((state) => state.shard === shard);
    const before = await known();
    if (this.#term === 0 || (before?.term ?? 0) < this.#term) {
      await store.writer.lane().push([{ kind: 'clear', shard, fence: true, nowMs: clock.wallMs() }]);
      const after = await known();
      if (run === this.#run && after?.removed === true && after.term > this.#term) [this.#term, this.origin] = [after.term, after.origin];
    }
    if (run === this.#run) this.#isDone = true;
  }

  leave(): void {
    this.#run += 1;
    this.#isDone = false;
  }
}
