/** The limits of history. When any one of them is exceeded, the oldest changes may be removed. */
import { bytes, count, duration } from './option.js';

export const historyOptions = {
  historyAgeMaxMs: duration({
    flag: 'history-age-max',
    yaml: 'history.ageMax',
    default: '24h',
    min: '0s',
    max: '365d',
    help: 'How long a superseded change stays readable.',
  }),
  historyChangesMax: count({
    flag: 'history-changes-max',
    yaml: 'history.changesMax',
    default: '1000000',
    min: 0,
    max: 1_000_000_000,
    help: 'How many superseded changes stay readable.',
  }),
  historyBytesMax: bytes({
    flag: 'history-bytes-max',
    yaml: 'history.bytesMax',
    default: '4GiB',
    min: '0B',
    max: '1024TiB',
    help: 'How many bytes of superseded changes stay readable.',
  }),
  tombstoneAgeMaxMs: duration({
    flag: 'tombstone-age-max',
    yaml: 'history.tombstoneAgeMax',
    default: '30d',
    min: '0s',
    max: '3650d',
    help: 'How long a deleted key is remembered.',
  }),
  tombstonesMax: count({
    flag: 'tombstones-max',
    yaml: 'history.tombstonesMax',
    default: '1000000',
    min: 0,
    max: 1_000_000_000,
    help: 'How many deleted keys are remembered.',
  }),
} as const;
