/** Pushes that go nowhere: they are kept, and answered as a test asks. */
import type { ShardState } from '../../../src/domain/claim.js';
import type { Subscription } from '../../../src/domain/ports.js';
import type { PushLane, Pushes } from '../../../src/domain/store-port.js';
import type { LinkState, Push, PushOutcome, SliceState } from '../../../src/domain/push.js';
import { emptyDigest, formatDigest } from '../../../src/domain/digest.js';
import type { ShardName } from '../../../src/domain/shard.js';
import { formatSlice, type Slice } from '../../../src/domain/slice.js';

const digest = formatDigest(emptyDigest);

type Listener = Parameters<Pushes['follow']>[0];

export class FakePushes implements Pushes {
  readonly pushed: Push[] = [];
  readonly shardStates: ShardState[] = [];
  readonly sliceStates: SliceState[] = [];
  readonly linkStates: LinkState[] = [];
  readonly listeners = new Set<Listener>();
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

  async links(): Promise<readonly LinkState[]> {
    return this.linkStates;
  }

  follow(listener: Listener): Subscription {
    this.listeners.add(listener);
    return { cancel: () => this.listeners.delete(listener) };
  }

  hold(slice: Slice, state: Partial<SliceState> = {}): void {
    const at = this.sliceStates.findIndex((each) => formatSlice(each.slice) === formatSlice(slice));
    const never = { syncedTerm: 0, everSynced: false, filterHash: '', cameOver: '' } as const;
    const next: SliceState = { slice, objects: 1, bytes: 100, digest, changedMs: 0, ...never, ...state };
    if (at < 0) this.sliceStates.push(next);
    else this.sliceStates[at] = next;
  }
}

/** A shard as the store knows it: by default claimed by a pusher of this cache. */
export function aShardState(shard: ShardName, term: number, state: Partial<ShardState> = {}): ShardState {
  const via = 'via' in state ? state.via : state.removed === true ? undefined : 'local';
  return {
    shard,
    term,
    process: `process-${term}`,
    removed: false,
    origin: via === 'local' ? 'here' : 'far',
    plain: false,
    ...state,
    via,
  };
}
