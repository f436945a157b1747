/** The options of the SQLite engine. */
import type { HistoryLimits } from '../compactor.js';
import type { EngineLimits } from '../store-options.js';

export type StoreLimits = EngineLimits &
  Readonly<{
    history: HistoryLimits;
    /** A start after an unclean end does not check a database larger than this. */
    startCheckBytesMax: number;
  }>;
