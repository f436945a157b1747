/**
 * Opens and stops a cache over an open store: lists and watches, replication, look-ups by path, the
 * web, the listener. It is loaded while the committer's thread starts (server.ts).
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { Settings } from '../config/settings.js';
import { EventLoopDelay } from '../diagnostics/event-loop-delay.js';
import type { LastLines } from '../diagnostics/last-lines.js';
import { pollFiles } from '../certificates/polled-files.js';
import type { TypesFile } from '../config/files/types-file.js';
import { Catalogue } from '../domain/catalogue/catalogue.js';
import { pathTypes } from '../domain/path-entry.js';
import { Refused } from '../domain/errors.js';
import type { Store } from '../domain/store-port.js';
import type { LinkPolicies } from '../domain/link-policies.js';
import { ReloadedTogether, type Reloadable, type Reloaded } from '../domain/base/reloaded.js';
import type { TreeStatus } from '../domain/status.js';
import { describeServer } from './describe-server.js';
import { Closers } from './closers.js';
import { openConsole } from './open-console.js';
import type { FrontDoorSettings } from './open-front-door.js';
import { openKubePorts } from './open-kube-ports.js';
import { openPaths } from './open-paths.js';
import { openListener, type ServingParts } from './open-listener.js';
import { openReplication, type OpenReplication } from './open-replication.js';
import { openWatches, type OpenWatches } from './open-watches.js';
import type { ListenerParts } from '../http/listener.js';
import { treeReport } from '../tree/tree-report.js';
import { Freshness } from '../intake/shards/freshness.js';
import { TypeScopes } from '../intake/shards/type-scopes.js';
import { version } from '../version.js';
import { createApp } from '../web/app.js';

export type OpenServer = Readonly<{
  port: number;
  /** Reloads the polled files at once. The keys are the names that the log uses. */
  reload: () => ReadonlyMap<string, Reloaded>;
  /** Stops in the order that `http/listener.ts` gives. Resolves when everything is closed. */
  stop: () => Promise<void>;
  /** Resolves when the server cannot continue. */
  failed: Promise<Error>;
}>;

export type CacheParts = ServingParts &
  Readonly<{
    store: Store;
    random: () => number;
    typesFile: TypesFile;
    watchPolicies: WatchPolicies | undefined;
    frontDoor: FrontDoorSettings | undefined;
    lastLines: LastLines;
  }>;

/**
 * Publishes link policies in place of the settings' policies, until the caller closes the result.
 */
export type WatchPolicies = (publish: (policies: LinkPolicies) => void) => Reloadable | undefined;

const eventLoop = { resolutionMs: 5, windowMs: 10_000 };

/** Resolves when the server listens. If it cannot, closes the store and what was opened over it. */
export async function openCache(settings: Settings, parts: CacheParts): Promise<OpenServer> {
  const closers = new Closers();
  closers.add(parts.store);
  try {
    return await openOverStore(settings, { ...parts, closers });
  } catch (error) {
    // A further error, while they close, would hide the cause.
    await closers.close().catch(() => {});
    throw error;
  }
}

async function openOverStore(settings: Settings, parts: CacheParts & Readonly<{ closers: Closers }>): Promise<OpenServer> {
  const { store, log, clock, metrics, health, certificates, quotas, frontDoor, lastLines, closers } = parts;
  const scopes = await TypeScopes.open(parts.typesFile.types, store);
  const catalogue = new Catalogue(parts.typesFile.types, pathTypes);
  const watches = openWatches(settings, parts);
  const { newest, hub } = watches;
  const replication = await openReplication(settings, { ...parts, catalogue, hub });
  const { tree, removals, shards, endpoint } = replication;
  const freshness = openFreshness(parts, { catalogue, watches, replication });
  const paths = openPaths({ store, freshness, changedAt: (type) => newest.of(type), metrics, clock, log });
  const ports = openKubePorts(settings, { ...parts, ...watches, catalogue, intake: replication.intake, freshness });
  const console = settings.console
    ? closers.add(openConsole({ cacheId: store.cacheId, freshness, catalogue, metrics, lastLines, clock, log }))
    : undefined;
  const { publicPaths } = settings;
  const app = createApp(
    { ports, console, freshness, paths, shards, removals, caches: tree.forgetting, log, metrics, health, version: version(), publicPaths },
    settings,
  );
  const front =
    frontDoor &&
    (await import('./open-front-door.js').then(({ openFrontDoor }) =>
      openFrontDoor(
        frontDoor,
        { store, paths, freshness, health, metrics, clock, log },
        { ...settings, filesPollMs: settings.tlsFilesPollMs },
      ),
    ));
  if (front !== undefined) closers.add(front);
  const asCache: Pick<ListenerParts, 'handle' | 'upgrade'> = {
    handle: app,
    upgrade: ({ request, socket, head, caller, refusal }) =>
      endpoint.upgrade(request, socket, head, caller, refusal instanceof Refused ? refusal.refusal : undefined),
  };
  const listener = openListener(settings, parts, front ?? asCache, { passesOn: front !== undefined });
  const delay = closers.add(new EventLoopDelay({ clock }, eventLoop));
  const isAuthenticating = certificates.authorities !== undefined || settings.allowNoClientCa;
  describeServer({ metrics, health, clock, store, hub, delay, endpoint, freshness, tree, listener, quotas, isAuthenticating }, settings);
  await listener.listen();
  const leaveParent = new AbortController();
  const following = tree.run(leaveParent.signal).catch((error: unknown) => log.error('link.failed', { error }));
  const reloadables = new ReloadedTogether({
    ...certificates.watch({
      show: (pair) => listener.show(pair),
      trust: async (authorities) => {
        console?.sessions.endAll();
        await listener.trust(authorities);
        // A connection that `trust` had not checked yet may have obtained a link meanwhile.
        console?.sessions.endAll();
      },
    }),
    policies: parts.watchPolicies?.((changed) => tree.changePolicies(changed)),
    types: openTypes(settings, parts, { catalogue, scopes, watches, replication }),
  });

  const stop = async (): Promise<void> => {
    health.beginShutdown();
    reloadables.close();
    certificates.expiry.close();
    listener.beginStop();
    store.beginClose();
    leaveParent.abort();
    tree.close();
    const pushersGone = endpoint.close(settings.shutdownGraceMs);
    hub.endAll();
    front?.endLasting();
    await pushersGone;
    await following;
    await listener.finishStop(settings.shutdownGraceMs);
    await closers.close();
  };
  return { port: listener.port, reload: () => reloadables.reload(), stop, failed: store.failed };
}

type Opened = Readonly<{ catalogue: Catalogue; scopes: TypeScopes; watches: OpenWatches; replication: OpenReplication }>;

function openFreshness(
  { store, clock, health, certificates }: CacheParts,
  { catalogue, watches, replication }: Omit<Opened, 'scopes'>,
): Freshness {
  const { sessions, standbys, removals, kept, tree } = replication;
  return new Freshness({
    store,
    known: store.state,
    sessions,
    standbys,
    isKnown: ({ resource, shard }) => catalogue.find(resource, shard) !== undefined,
    links: tree.freshness,
    newest: watches.newest,
    removals,
    kept,
    reportTree: (): TreeStatus => treeReport({ tree, known: store.state, clock }),
    tree,
    clock,
    turn,
    version: version(),
    isReady: () => health.isReady,
    certificates: () => certificates.expiry.report(),
  });
}

/** Polls the file of types, if there is one, and follows its changes. */
function openTypes(
  { policyPollMs }: Settings,
  { typesFile, clock, log }: CacheParts,
  { catalogue, scopes, watches, replication: { sessions, tree, dropType } }: Opened,
): Reloadable | undefined {
  const polled = typesFile.polled((types) => {
    scopes.check(types);
    const { begun, ended, widened } = catalogue.replaceTable(types);
    scopes.record(types);
    for (const type of ended) watches.hub.endOf(type);
    // The cache refused objects of widened types, so they are missing here: request all objects
    // again. A type that begins may have had objects here earlier.
    for (const { group, resource, identity } of [...widened, ...begun]) dropType({ group, resource, identity });
    sessions.declared();
    tree.followTypes(begun);
  });
  return polled && pollFiles({ clock, log }, polled, policyPollMs);
}
