/** Opens the services that requests of Kubernetes clients use (web/kube). */
import type { Settings } from '../config/settings.js';
import type { Log } from '../diagnostics/log.js';
import type { Catalogue } from '../domain/catalogue/catalogue.js';
import type { Clock, Freshness } from '../domain/ports.js';
import { RecentChanges } from '../domain/recent-changes.js';
import type { Store } from '../domain/store-port.js';
import { heavyLimits, HeavyThread } from '../heavy/heavy-thread.js';
import type { Intake } from '../intake/writes/intake.js';
import { RootSchemas } from '../web/discovery/root-schemas.js';
import { Gzip } from '../web/formats/gzip.js';
import type { KubePorts } from '../web/kube/call.js';
import { ViewCallers } from '../web/views/view-callers.js';
import type { Closers } from './closers.js';
import { pieceBytesMaxOf, type OpenWatches } from './open-watches.js';

type Parts = OpenWatches &
  Readonly<{
    store: Store;
    catalogue: Catalogue;
    intake: Intake;
    freshness: Freshness;
    clock: Clock;
    random: () => number;
    log: Log;
    closers: Closers;
  }>;

export function openKubePorts(settings: Settings, parts: Parts): KubePorts {
  const { store, catalogue, intake, freshness, newest, snapshots, hub, clock, random, log, closers } = parts;
  const { objects, history, revisions, commits, paths } = store;
  const movedPaths = new RecentChanges(revisions.published);
  commits.subscribe((commit) => {
    for (const path of commit.movedPaths) movedPaths.record(path, commit.revision);
  });
  return {
    objects,
    history,
    revisions,
    commits,
    paths,
    movedPaths,
    snapshots,
    watches: hub,
    catalogue,
    intake,
    heavy: closers.add(new HeavyThread({ clock, log }, heavyLimits)),
    clock,
    random,
    schemas: new RootSchemas({ types: () => catalogue.table, objects, revisions, changedAt: (type) => newest.of(type) }),
    viewCallers: settings.viewCallers === 'rbac' ? new ViewCallers({ objects, revisions, freshness }) : undefined,
    gzip: new Gzip(),
    limits: { ...settings, pieceBytesMax: pieceBytesMaxOf(settings) },
  };
}
