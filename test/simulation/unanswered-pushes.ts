/**
 * A store that answers some of its pushes as `unavailable` though it has stored them, as the engine on etcd may: of what a lane gave together the first
 * pushes are answered, some of those that follow are stored, and none of these is answered. What the lane gives behind that is refused until its writer starts over.
 */
import type { Push, PushOutcome } from '../../src/domain/push.js';
import type { PushLane, Writer } from '../../src/domain/store-port.js';

const unavailable: PushOutcome = {
  kind: 'unavailable',
  refusal: { reason: 'ServiceUnavailable', message: 'it is not known what became of it' },
};

export class UnansweredPushes {
  readonly #random: () => number;
  /** How often it happens to what a lane gives together. */
  share = 0;
  /** By kind: how many were stored, or have changed nothing, without an answer. */
  readonly stored = new Map<Push['kind'], number>();

  constructor(random: () => number) {
    this.#random = random;
  }

  /** From now on, to every lane that the store opens. */
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
      room: () => lane.room(),
      push: (pushes) => {
        const decided = decide(pushes);
        last = decided;
        return decided;
      },
    };
  }

  async #store(lane: PushLane, pushes: readonly Push[]): Promise<readonly PushOutcome[]> {
    const answered = Math.floor(this.#random() * pushes.length);
    // Where its own answer is missing, what waits for all before it has not come to its turn.
    const barrier = pushes.findIndex((push, i) => i > answered && !('key' in push));
    const silent = pushes.slice(answered, barrier < 0 ? undefined : barrier).filter(() => this.#random() < 0.7);
    const outcomes = await lane.push([...pushes.slice(0, answered), ...silent]);
    silent.forEach(({ kind }, i) => {
      if (outcomes[answered + i]?.kind !== 'fenced') this.stored.set(kind, (this.stored.get(kind) ?? 0) + 1);
    });
    return pushes.map((_, i) => (i < answered ? (outcomes[i] ?? unavailable) : unavailable));
  }
}
