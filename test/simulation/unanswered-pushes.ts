/**
 * A store that answers some pushes as `unavailable` though it has stored them, as the engine on
 * etcd may. Of a batch that a lane submits, the first pushes are answered. Some of the others are
 * stored, and all of them are answered as `unavailable`. The lane's later pushes are refused until
 * its writer starts over.
 */
import type { Push, PushOutcome } from '../../src/domain/push.js';
import type { PushLane, Writer } from '../../src/domain/store-port.js';

const unavailable: PushOutcome = {
  kind: 'unavailable',
  refusal: { reason: 'ServiceUnavailable', message: 'it is not known what became of it' },
};

export class UnansweredPushes {
  readonly #random: () => number;
  /** The share of batches in which this happens. */
  share = 0;
  /** By kind: pushes that were stored, or would have changed nothing, without an answer. */
  readonly stored = new Map<Push['kind'], number>();

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Applies to every lane that the store opens from now on. */
  interpose(writer: Pick<Writer, 'lane'>): void {
    const open = writer.lane.bind(writer);
    writer.lane = () => this.#lane(open());
  }

  #lane(lane: PushLane): PushLane {
    let isBroken = false;
    let last: Promise<unknown> = Promise.resolve();
    const decide = (pushes: readonly Push[]): Promise<readonly PushOutcome[]> => {
      if (pushes.some(({ kind }) => kind === 'meet' || kind === 'acquire')) isBroken = false;
      if (isBroken && pushes.some((push) => 'by' in push || push.kind === 'reach')) return last.then(() => pushes.map(() => unavailable));
      if (pushes.length === 0 || this.#random() >= this.share) return lane.push(pushes);
      isBroken = true;
      return this.#store(lane, pushes);
    };
    return {
      drained: () => lane.drained(),
      push: (pushes) => {
        const decided = decide(pushes);
        last = decided;
        return decided;
      },
    };
  }

  async #store(lane: PushLane, pushes: readonly Push[]): Promise<readonly PushOutcome[]> {
    const answered = Math.floor(this.#random() * pushes.length);
    // A push that waits for all earlier ones must not run if one of those has no answer.
    const barrier = pushes.findIndex((push, i) => i > answered && !('key' in push));
    const silent = pushes.slice(answered, barrier < 0 ? undefined : barrier).filter(() => this.#random() < 0.7);
    const outcomes = await lane.push([...pushes.slice(0, answered), ...silent]);
    silent.forEach(({ kind }, i) => {
      if (outcomes[answered + i]?.kind !== 'fenced') this.stored.set(kind, (this.stored.get(kind) ?? 0) + 1);
    });
    return pushes.map((_, i) => (i < answered ? (outcomes[i] ?? unavailable) : unavailable));
  }
}
