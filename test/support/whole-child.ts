/** A child that has every object of some slices, none as a rule, and goes on saying so until its test is over. */
import type { ExecutionContext } from 'ava';
import type { SliceFreshness } from '../../src/frames/frame.js';
import type { Slice } from '../../src/domain/slice.js';
import { claim, openChild } from './raw-child.js';
import type { RawPusher } from './raw-pusher.js';
import type { TestServer } from './test-server.js';

/** Resolves once the server has all of them, and what is reported of each: by default that it is whole. */
export async function aWholeChild(
  t: ExecutionContext,
  server: TestServer,
  slices: readonly Slice[],
  reportOf: (slice: Slice) => Partial<SliceFreshness> = () => ({}),
): Promise<RawPusher> {
  const child = await openChild(server);
  for (const shard of new Set(slices.map((slice) => slice.shard))) claim(child, shard);
  for (const slice of slices) {
    child.begin(slice);
    child.end(slice, 0, 'a filter');
  }
  const freshness = slices.map((slice) => ({ slice, connected: true, synced: true, lagMs: 0, whole: true, ...reportOf(slice) }));
  const report = (heartbeat: number, changed: readonly SliceFreshness[]): number =>
    child.numbered((sequence) => ({ kind: 'report', sequence, freshness: changed, heartbeat, isAll: true, isComplete: true }));
  const reported = report((await child.expect('heartbeat')).number, freshness);
  await child.acknowledged(reported);
  const answering = (async () => {
    for (;;) {
      const frame = await child.next();
      if (frame.kind === 'heartbeat') report(frame.number, []);
    }
  })().catch(() => {});
  t.teardown(async () => {
    child.socket.terminate();
    await answering;
  });
  return child;
}
