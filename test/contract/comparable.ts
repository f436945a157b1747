/** An engine's state without what differs between two engines: the cache's id and times. */
import type { ShardState } from '../../src/domain/claim.js';
import type { SliceState } from '../../src/domain/push.js';
import { formatSlice } from '../../src/domain/slice.js';
import type { Store } from '../../src/domain/store-port.js';

export function comparable(state: ShardState, { cacheId }: Store): ShardState {
  return state.origin === cacheId ? { ...state, origin: 'own' } : state;
}

export function timeless({ slice, changedMs, ...state }: SliceState): Readonly<{ slice: string }> {
  return { slice: formatSlice(slice), ...state, ...(changedMs === 0 ? { isUnchanged: true } : {}) };
}

export function byText(a: unknown, b: unknown): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}
