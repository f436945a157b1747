/**
 * Opens this cache's place in the tree (tree/) from its settings: its name, its parent, its bounds.
 */
import { X509Certificate } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { parseCaller } from '../certificates/caller-from-certificate.js';
import { readAuthorities, readPair } from '../certificates/pair-files.js';
import { options } from '../config/options/options.js';
import type { Settings } from '../config/settings.js';
import { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Log } from '../diagnostics/log.js';
import type { Metrics } from '../diagnostics/metrics.js';
import type { LinkPolicies } from '../domain/link-policies.js';
import { CacheError } from '../domain/errors.js';
import type { Clock, Watches } from '../domain/ports.js';
import type { Store } from '../domain/store-port.js';
import { connectSocket, defaultConnectOptions, type ClientIdentity } from '../frames/connect-socket.js';
import { connectPath } from '../frames/socket-options.js';
import type { IntakeRules } from '../intake/push/receiver-state.js';
import type { HeldRemovals } from '../intake/shards/held-removals.js';
import type { PushSessions } from '../intake/push/push-sessions.js';
import { defaultSenderBounds } from '../sender/sender-options.js';
import { ChildShards } from '../tree/child-shards.js';
import { linkReconnectBounds } from '../tree/links/link.js';
import { Tree } from '../tree/tree.js';
import { version } from '../version.js';

export type OpenTreeParts = Readonly<{
  store: Store;
  sessions: PushSessions;
  removals: HeldRemovals;
  watches: Pick<Watches, 'reportAbsent'>;
  rules: IntakeRules;
  clock: Clock;
  random: () => number;
  log: Log;
  metrics: Metrics;
}>;

const progressIntervalMs = 5_000;
const refusedRetryMs = 30_000;
const awayRetryMs = 100;
/** The maximum of one frame of a link. It is small so that slices share the link. */
const batch = { batchMutationsMax: 256, batchBytesMax: 512 * 1024 };

/** Throws when the certificate for the parent cannot be read. */
export function openTree(settings: Settings, policies: LinkPolicies, parts: OpenTreeParts): Tree {
  const { sessions, clock, log } = parts;
  const { frameBytesMax, pingIntervalMs, pongTimeoutMs } = settings;
  const connectOptions = { ...defaultConnectOptions, frameBytesMax, pingIntervalMs, pongTimeoutMs };
  const urls = settings.parentUrls.map((url) => new URL(connectPath, url).href);
  const name = urls.length > 0 ? nameOf(settings) : '';
  return new Tree(
    {
      ...parts,
      turn,
      boundedLog: new BoundedLog({ clock, log }),
      childShards: new ChildShards(parts.store.state, settings.linkShardsPerChildMax),
      pushers: sessions,
      reportAbsent: (key) => parts.watches.reportAbsent(key),
      sendPushersAway: () => sessions.evictAll('unavailable', 'the store was rolled back', awayRetryMs),
      // Read the files for each connection, because certificates are renewed in place.
      connect: (url, signal) => connectSocket(url, readIdentity(settings), { clock, signal }, connectOptions),
    },
    policies,
    {
      ...defaultSenderBounds,
      ...linkReconnectBounds,
      ...batch,
      urls,
      name,
      term: clock.wallMs(),
      agent: `strata ${version()}`,
      progressIntervalMs,
      refusedRetryMs,
      digestIntervalMs: settings.linkDigestIntervalMs,
      readyGraceMs: settings.parentReadyGraceMs,
    },
  );
}

/** The name by which the parent knows this cache: from the settings, or from its certificate. */
function nameOf(settings: Settings): string {
  const { certificate } = readIdentity(settings);
  const caller = parseCaller(new X509Certificate(certificate));
  const said = caller.speaksFor?.kind === 'cache' ? caller.speaksFor.name : undefined;
  const name = settings.cacheName ?? said;
  if (name === undefined)
    throw new CacheError('the certificate for the parent names no cache (strata://cache/NAME): name this one with --cache-name');
  if (said !== undefined && said !== name)
    throw new CacheError(`the certificate for the parent is that of the cache ${said}, not of ${name}`);
  return name;
}

const parentFlags = { cert: options.parentCertFile.flag, key: options.parentKeyFile.flag };

/** Throws CacheError. */
function readIdentity({ parentCaFile, parentCertFile, parentKeyFile }: Settings): ClientIdentity {
  if (parentCertFile === undefined || parentKeyFile === undefined)
    throw new CacheError('a cache with a parent needs --parent-cert-file and --parent-key-file');
  const { cert: certificate, key } = readPair({ certFile: parentCertFile, keyFile: parentKeyFile }, parentFlags);
  const ca = parentCaFile === undefined ? undefined : readAuthorities(parentCaFile, 'CA of the parent', options.parentCaFile.flag);
  return { ca, caFile: parentCaFile, certificate, key };
}
