/**
 * A child that reports some slices as whole, without objects, and keeps reporting until its test is
 * over.
 */
import type { ExecutionContext } from 'ava';
import { frameBounds } from '../../src/frames/frame-bounds.js';
import type { Frame, SliceFreshness } from '../../src/frames/frame.js';
import type { Slice } from '../../src/domain/slice.js';
import { claim, openChild } from './raw-child.js';
import type { RawPusher } from './raw-pusher.js';
import type { TestServer } from './test-server.js';

/**
 * Resolves once the server has all slices and what `reportOf` says of each; by default each is
 * whole.
 */
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
  const report = (heartbeat: number, changed: readonly SliceFreshness[], isAll = true): number =>
    child.numbered((sequence) => ({ kind: 'report', sequence, freshness: changed, heartbeat, isAll, isComplete: true }));
  const { number } = await child.expect('heartbeat');
  while (freshness.length > frameBounds.namesPerFrame) report(0, freshness.splice(0, frameBounds.namesPerFrame), false);
  const reported = report(number, freshness);
  const answer = (frame: Frame): void => {
    if (frame.kind === 'heartbeat') report(frame.number, []);
  };
  // The next heartbeat may come before the acknowledgement.
  for (const frame of await child.acknowledged(reported)) answer(frame);
  const answering = (async () => {
    for (;;) answer(await child.next());
  })().catch(() => {});
  t.teardown(async () => {
    child.socket.terminate();
    await answering;
  });
  return child;
}
