/**
 * Opens the store that the settings name, with their limits. Outside `store/`, only this file and
 * the commands that work on the files of a store import an engine.
 */
import { readClientTls } from '../certificates/pair-files.js';
import { options } from '../config/options/options.js';
import { keptNamesOf, type Settings } from '../config/settings.js';
import type { Store } from '../domain/store-port.js';
import { type DamagedStore, unlessDamaged } from '../store/damaged-store.js';
import type { StartCommitter } from '../store/sqlite/committer-messages.js';
import { ownMigrations } from '../store/sqlite/migrate.js';
import type { EtcdTls } from '../store/etcd/members.js';
import type { EtcdLimits, EtcdOptions } from '../store/etcd/store-options.js';
import type { QueueLimits } from '../store/mutation-queue.js';
import type { StoreLimits } from '../store/sqlite/store-options.js';
import type { StoreParts } from '../store/store-options.js';

/** A snapshot in progress delays compaction no longer than this. */
const snapshotHoldMs = 300_000;
/**
 * A few more rows than fill a chunk with objects of the usual 2.5 kB. Rows beyond the chunk are
 * read again.
 */
const snapshotRowsMax = 128;
/**
 * How many pushes of all pushers may wait in the queue, counted in commits. With this many the
 * committer never idles, and no other writer waits long.
 */
const commitsOfPushesMax = 2;
/**
 * Divides the size of a commit while several lanes write, because each lane waits for the commits
 * of the other lanes. This cuts the delay to a fifth and costs a tenth of the rate.
 */
const sharedDivisor = 8;

/** Throws a CacheError that says why the store cannot be opened. */
export async function openStore(settings: Settings, parts: StoreParts, startCommitter?: StartCommitter): Promise<Store | DamagedStore> {
  if (settings.etcdServers.length > 0) {
    const { openEtcd } = await import('../store/etcd/open-etcd.js');
    const options = etcdOptionsOf(settings);
    return openEtcd({ ...options, endpoints: rotatedAtRandom(options.endpoints, parts.random) }, etcdLimits(settings), parts);
  }
  const { openSqlite } = await import('../store/sqlite/open-sqlite.js');
  return unlessDamaged(openSqlite(settings.dataDirectory, ownMigrations, storeLimits(settings), parts, startCommitter));
}

/**
 * Each server begins with a random endpoint. Otherwise all servers would watch at one member, and
 * lose their watches together if it stalled while history is compacted.
 */
function rotatedAtRandom(endpoints: readonly string[], random: () => number): readonly string[] {
  const first = Math.floor(random() * endpoints.length);
  return [...endpoints.slice(first), ...endpoints.slice(0, first)];
}

type EtcdSettings = Pick<Settings, 'etcdServers' | 'etcdPrefix' | 'etcdCaFile' | 'etcdCertFile' | 'etcdKeyFile' | 'etcdTimeoutMs'>;

const etcdFlags = { ca: options.etcdCaFile.flag, cert: options.etcdCertFile.flag, key: options.etcdKeyFile.flag };

export function etcdOptionsOf(settings: EtcdSettings): EtcdOptions {
  const { etcdServers, etcdPrefix, etcdCaFile: caFile, etcdCertFile: certFile, etcdKeyFile: keyFile, etcdTimeoutMs } = settings;
  const tls = (): EtcdTls | undefined =>
    caFile === undefined ? undefined : readClientTls({ caFile, certFile, keyFile }, 'etcd', etcdFlags);
  return { endpoints: etcdServers, prefix: etcdPrefix, tls, timeoutMs: etcdTimeoutMs };
}

function etcdLimits(settings: Settings): EtcdLimits {
  return {
    // Lanes write to etcd in parallel, so none waits for the commits of another.
    queue: { ...queueLimits(settings), sharedDivisor: 1 },
    history: { ageMs: settings.etcdHistoryAgeMs, changesMax: settings.historyChangesMax, bytesMax: settings.etcdHistoryBytesMax },
    snapshot: { rowsMax: snapshotRowsMax, bytesMax: settings.listChunkBytesMax },
    snapshotHoldMs: Math.min(snapshotHoldMs, settings.etcdHistoryAgeMs),
    recentBytesMax: settings.etcdBodiesBytesMax,
    resumedRevisionsMax: settings.etcdResumedRevisionsMax,
    dutiesIntervalMs: 1_000,
    keptNames: keptNamesOf(settings),
  };
}

function queueLimits(settings: Settings): QueueLimits {
  return {
    mutationsMax: settings.queueMutationsMax,
    bytesMax: settings.queueBytesMax,
    batchMutationsMax: settings.commitMutationsMax,
    batchBytesMax: settings.commitBytesMax,
    sharedDivisor,
    pushMutationsMax: commitsOfPushesMax * settings.commitMutationsMax,
    pushBytesMax: commitsOfPushesMax * settings.commitBytesMax,
  };
}

function storeLimits(settings: Settings): StoreLimits {
  return {
    queue: queueLimits(settings),
    history: {
      historyAgeMs: settings.historyAgeMaxMs,
      historyChangesMax: settings.historyChangesMax,
      historyBytesMax: settings.historyBytesMax,
      tombstoneAgeMs: settings.tombstoneAgeMaxMs,
      tombstonesMax: settings.tombstonesMax,
    },
    snapshot: { rowsMax: snapshotRowsMax, bytesMax: settings.listChunkBytesMax },
    snapshotHoldMs,
    recentBytesMax: settings.recentBytesMax,
    startCheckBytesMax: settings.startCheckBytesMax,
    keptNames: keptNamesOf(settings),
  };
}
