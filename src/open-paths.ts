/** Opens the index of paths over a store. */
import { BoundedLog } from './diagnostics/bounded-log.js';
import type { Log } from './diagnostics/log.js';
import type { Metrics } from './diagnostics/metrics.js';
import type { Clock, Freshness } from './domain/ports.js';
import type { CanonicalPaths, Objects } from './domain/store-port.js';
import { PathIndex } from './paths/path-index.js';

type PathParts = Readonly<{ store: Objects & CanonicalPaths; freshness: Freshness; metrics: Metrics; clock: Clock; log: Log }>;

export function openPaths({ store, freshness, metrics, clock, log }: PathParts): PathIndex {
  const conflicts = new BoundedLog({ clock, log });
  return new PathIndex({
    objects: store,
    ownersOf: (path) => store.ownersOf(path),
    freshness,
    clock,
    conflict: (cluster, shards) => {
      metrics.pathConflicts.add(1);
      conflicts.warn('path.conflict', { cluster, shards });
    },
  });
}
