import test from 'ava';
import type { Slice } from '../../src/domain/slice.js';
import type { FrameOf } from '../../src/frames/frame.js';
import { ChangedFreshness, type ToldSlice } from '../../src/tier/changed-freshness.js';
import { aSlice } from '../support/pushes.js';

const exports = aSlice();
const schemas = aSlice({ resource: 'apiresourceschemas' });

function aTeller() {
  const state = { connected: true, lagMs: 0, synced: new Set<Slice>([exports, schemas]), looks: 0 };
  const told = new Map<Slice, ToldSlice>();
  const freshness = new ChangedFreshness({
    isSynced: (slice) => state.synced.has(slice),
    freshnessOf: () => {
      state.looks += 1;
      return { connected: state.connected, lagMs: state.lagMs };
    },
  });
  const tell = (slices: readonly Slice[]): readonly FrameOf<'status'>[] => {
    for (const slice of slices) if (!told.has(slice)) told.set(slice, { slice, freshness: '' });
    const marked = new Set(slices.flatMap((slice) => told.get(slice) ?? []));
    const frames = [...freshness.frames(marked, true)].filter((frame) => frame !== undefined);
    return marked.size === 0 ? frames : [];
  };
  const texts = (frames: readonly FrameOf<'status'>[]): readonly string[] =>
    frames.flatMap(({ freshness }) =>
      freshness.map(({ slice, connected, synced, lagMs }) => `${slice.resource.resource} ${connected} ${synced} ${lagMs}`),
    );
  return { state, tell, texts };
}

test('all of it is told once, then what has changed', (t) => {
  const { state, tell, texts } = aTeller();

  t.deepEqual(texts(tell([exports, schemas])), ['apiexports true true 0', 'apiresourceschemas true true 0']);
  t.deepEqual(tell([exports, schemas]), []);
  state.synced.delete(schemas);
  t.deepEqual(tell([exports]), []);
  t.is(state.looks, 5);
  t.deepEqual(texts(tell([exports, schemas])), ['apiresourceschemas true false 0']);
});

test('a lag is told in steps of a second', (t) => {
  const { state, tell, texts } = aTeller();
  tell([exports]);

  state.lagMs = 999;
  t.deepEqual(tell([exports]), []);
  state.lagMs = 1_700;
  t.deepEqual(texts(tell([exports])), ['apiexports true true 1000']);
});

test('the first round ends with a frame of none: who waits for it knows then that this was all', (t) => {
  const { tell } = aTeller();

  t.deepEqual(tell([]), [{ kind: 'status', freshness: [] }]);
  t.deepEqual(tell([]), []);
});

test('no frame tells of more than a thousand slices', (t) => {
  const { tell } = aTeller();
  const slices = Array.from({ length: 2_001 }, (_, i) => aSlice({ shard: `s-${i}` }));

  t.deepEqual(
    tell(slices).map(({ freshness }) => freshness.length),
    [1_000, 1_000, 1, 0],
  );
});
