/** Records pushes instead of committing them, and answers them as the test says. */
import type { ShardState } from '../../../src/domain/claim.js';
import type { StateChange } from '../../../src/domain/published-state.js';
import type { PushLane, Writer } from '../../../src/domain/store-port.js';
import type { Push, PushOutcome, SliceState } from '../../../src/domain/push.js';
import { emptyDigest, formatDigest } from '../../../src/domain/slices/digest.js';
import type { ShardName } from '../../../src/domain/shard.js';
import type { Slice } from '../../../src/domain/slice.js';
import { State } from '../../../src/store/state.js';

const digest = formatDigest(emptyDigest);

export class FakePushes implements Pick<Writer, 'lane'> {
  readonly pushed: Push[] = [];
  readonly state = new State({ shards: [], slices: [], links: [] });
  readonly writer: Pick<Writer, 'lane'> = this;
  outcomeOf: (push: Push) => PushOutcome = () => ({ kind: 'unchanged' });
  lanes = 0;

  lane(): PushLane {
    this.lanes += 1;
    return {
      drained: async () => {},
      push: async (pushes) => {
        this.pushed.push(...pushes);
        return pushes.map((push) => this.outcomeOf(push));
      },
    };
  }

  publish(change: Partial<StateChange>): void {
    this.state.publish({ shards: [], slices: [], links: [], invalidated: [], ...change });
  }

  /** Makes the store hold the slice, with one object unless the test says otherwise. */
  hold(slice: Slice, state: Partial<SliceState> = {}): void {
    const never = { syncedTerm: 0, everSynced: false, filterHash: '', cameOver: '' } as const;
    this.publish({ slices: [{ slice, objects: 1, bytes: 100, digest, changedMs: 0, ...never, ...state }] });
  }
}

/** A shard as the store knows it: by default a pusher of this cache has claimed it. */
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
