/** Pushes that go nowhere: what was pushed is kept, and answered with what a test asks for. */
import type { PushLane, Pushes } from '../../src/domain/ports.js';
import type { Push, PushOutcome, ShardState, SliceState } from '../../src/domain/push.js';
import { formatSlice, type Slice } from '../../src/domain/slice.js';

export class FakePushes implements Pushes {
  readonly pushed: Push[] = [];
  readonly shardStates: ShardState[] = [];
  readonly sliceStates: SliceState[] = [];
  outcomeOf: (push: Push) => PushOutcome = () => ({ kind: 'unchanged' });
  lanes = 0;

  lane(): PushLane {
    this.lanes += 1;
    return {
      room: async () => {},
      push: async (pushes) => {
        this.pushed.push(...pushes);
        return pushes.map((push) => this.outcomeOf(push));
      },
    };
  }

  async shards(): Promise<readonly ShardState[]> {
    return this.shardStates;
  }

  async slices(): Promise<readonly SliceState[]> {
    return this.sliceStates;
  }

  hold(slice: Slice, state: Partial<SliceState> = {}): void {
    const at = this.sliceStates.findIndex((each) => formatSlice(each.slice) === formatSlice(slice));
    const next = { slice, objects: 1, bytes: 100, changedMs: 0, stated: 0, synced: false, ...state };
    if (at < 0) this.sliceStates.push(next);
    else this.sliceStates[at] = next;
  }
}
