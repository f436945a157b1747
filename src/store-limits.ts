/** What the settings come to for the store: its queue, its history and its snapshots. */
import type { Settings } from './config/settings.js';
import type { StoreLimits } from './store/sqlite/store-options.js';

/** A snapshot in progress holds compaction back no longer than this. */
const snapshotHoldMs = 300_000;
/** A little more than fill a chunk with objects of the usual 2.5 kB: rows looked at beyond the chunk are looked at again. */
const snapshotRowsMax = 128;
/** What all pushers together may have waiting: the committer never idles, and nobody waits for much of theirs. */
const commitsOfPushesMax = 2;
/** While several write, commits are so much smaller: each of them waits for the others'. A fifth of the delay for a tenth of the rate. */
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
