/** Opens lists and watches over a store: the snapshots that lists share, and the hub. */
import { setImmediate } from 'node:timers';
import type { Settings } from '../config/settings.js';
import type { Metrics } from '../diagnostics/metrics.js';
import { Pace } from '../domain/base/pace.js';
import type { Clock } from '../domain/ports.js';
import type { Revision } from '../domain/revision.js';
import type { Scope } from '../domain/scope.js';
import type { Store } from '../domain/store-port.js';
import { NewestChanges } from '../intake/shards/newest-changes.js';
import { Hub } from '../watch/hub.js';
import { SharedSnapshots } from '../watch/shared-snapshots.js';
import type { Closers } from './closers.js';

export type OpenWatches = Readonly<{ newest: NewestChanges; snapshots: SharedSnapshots; hub: Hub }>;

const sharedBytesMax = 64 * 1024 * 1024;
/**
 * Several commits are delivered to watches together, so that delivery takes at most a quarter of
 * the time. A commit waits at most `periodMsMax`.
 */
const deliveryRounds = { periodFactor: 4, periodMsMax: 10 };
/**
 * How many bytes of initial state are sent in one turn of the event loop. TLS takes about a
 * millisecond for a megabyte.
 */
const turnBytesMax = 1024 * 1024;

export function openWatches(
  settings: Settings,
  { store, clock, metrics, closers }: Readonly<{ store: Store; clock: Clock; metrics: Metrics; closers: Closers }>,
): OpenWatches {
  const { objects, revisions, history, commits } = store;
  const pace = new Pace(turnBytesMax, setImmediate);
  const newest = closers.add(new NewestChanges({ commits, revisions }));
  const changedAt = ({ identity, ...type }: Scope): Revision => newest.of({ ...type, identity: identity === '*' ? undefined : identity });
  const snapshots = closers.add(
    new SharedSnapshots({ objects, revisions, clock, pace, changedAt }, { sharedBytesMax }, (chunks) =>
      metrics.listChunksShared.add(chunks),
    ),
  );
  const observe = { fellBack: () => metrics.watchFallbacks.add(1), sent: (events: number) => metrics.eventsSent.add(events) };
  const hub = closers.add(
    new Hub(
      { clock, commits, revisions, history, objects, snapshots, pace, observe },
      {
        queueBytesMax: settings.watcherQueueBytesMax,
        pieceBytesMax: settings.listChunkBytesMax,
        readBytesMax: pieceBytesMaxOf(settings),
        bookmarkIntervalMs: settings.bookmarkIntervalMs,
        ...deliveryRounds,
      },
    ),
  );
  return { newest, snapshots, hub };
}

/** Bytes that are read at once: a chunk of a list, or the object that does not fit into it. */
export function pieceBytesMaxOf({ listChunkBytesMax, bodyBytesMax }: Settings): number {
  return listChunkBytesMax + bodyBytesMax;
}
