/** Opens the store that the settings name, within their limits. Beside the commands that work on the files of a store, the only file outside of `store/` that knows an engine. */
import type { Settings } from './config/settings.js';
import type { Store } from './domain/store-port.js';
import { type DamagedStore, unlessDamaged } from './store/damaged-store.js';
import { ownMigrations } from './store/sqlite/migrate.js';
import { openSqlite } from './store/sqlite/open-sqlite.js';
import type { StoreLimits, StoreParts } from './store/sqlite/store-options.js';

/** A snapshot in progress holds compaction back no longer than this. */
const snapshotHoldMs = 300_000;
/** A little more than fills a chunk with objects of the usual 2.5 kB: rows read beyond the chunk are read again. */
const snapshotRowsMax = 128;
/** How much all pushers together may have waiting, so that the committer never idles and nobody waits long for pushes. */
const commitsOfPushesMax = 2;
/** By what commits are smaller while several write, because each waits for the others': a fifth of the delay for a tenth of the rate. */
const sharedDivisor = 8;

/** Throws a CacheError that says why it cannot be opened. */
export function openStore(settings: Settings, parts: StoreParts): Promise<Store | DamagedStore> {
  return unlessDamaged(openSqlite(settings.dataDirectory, ownMigrations, storeLimits(settings), parts));
}

function storeLimits(settings: Settings): StoreLimits {
  return {
    queue: {
      mutationsMax: settings.queueMutationsMax,
      bytesMax: settings.queueBytesMax,
      batchMutationsMax: settings.commitMutationsMax,
      batchBytesMax: settings.commitBytesMax,
      sharedDivisor,
      pushMutationsMax: commitsOfPushesMax * settings.commitMutationsMax,
      pushBytesMax: commitsOfPushesMax * settings.commitBytesMax,
    },
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
  };
}
