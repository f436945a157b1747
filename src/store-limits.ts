/** The store's limits from the settings: its queue, its history and its snapshots. */
import type { Settings } from './config/settings.js';
import type { StoreLimits } from './store/sqlite/store-options.js';

/** A snapshot in progress holds compaction back no longer than this. */
const snapshotHoldMs = 300_000;
/** A little more than fills a chunk with objects of the usual 2.5 kB: rows read beyond the chunk are read again. */
const snapshotRowsMax = 128;
/** How much all pushers together may have waiting, so that the committer never idles and nobody waits long for pushes. */
const commitsOfPushesMax = 2;
/** By what commits are smaller while several write, because each waits for the others': a fifth of the delay for a tenth of the rate. */
const sharedDivisor = 8;

export function storeLimits(settings: Settings): StoreLimits {
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
