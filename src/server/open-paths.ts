/** Opens the index of paths over a store. */
import { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Log } from '../diagnostics/log.js';
import type { Metrics } from '../diagnostics/metrics.js';
import { clusterEntries, workspaceEntries } from '../domain/path-entry.js';
import type { Clock, Freshness } from '../domain/ports.js';
import type { Store } from '../domain/store-port.js';
import type { Resource } from '../domain/resource.js';
import type { Revision } from '../domain/revision.js';
import { PathIndex } from '../paths/path-index.js';

/** `changedAt`: the revision of the newest change to a type. */
type PathParts = Readonly<{ store: Pick<Store, 'objects' | 'paths'>; freshness: Freshness; changedAt: (type: Resource) => Revision }> &
  Readonly<{ metrics: Metrics; clock: Clock; log: Log }>;

export function openPaths({ store, freshness, changedAt, metrics, clock, log }: PathParts): PathIndex {
  const conflicts = new BoundedLog({ clock, log });
  return new PathIndex({
    objects: store.objects,
    ownersOf: (path) => store.paths.ownersOf(path),
    freshness,
    changedAt: () => Math.max(changedAt(clusterEntries), changedAt(workspaceEntries)),
    conflict: (dispute) => {
      metrics.pathConflicts.add(1);
      conflicts.warn('path.conflict', dispute);
    },
  });
}
