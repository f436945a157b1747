/**
 * Every option of the server. Each name ends with its unit, and each value has bounds.
 *
 * Flags that kcp's cache server also has are spelled the same.
 */
import { logFormats, logLevels } from '../../diagnostics/log.js';
import { cipherSuites } from './cipher-suites.js';
import { etcdOptions } from './etcd-options.js';
import { linkOptions } from './link-options.js';
import { listenOptions } from './listen-options.js';
import { bytes, choice, count, directory, duration, file, list, toggle } from './option.js';
import { pushOptions } from './push-options.js';

/** The limits of history. When any one of them is exceeded, the oldest changes may be removed. */
const historyOptions = {
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

export const options = {
  rootDirectory: directory({
    flag: 'root-directory',
    yaml: 'files.rootDirectory',
    default: '.strata',
    help: 'The directory for everything that the server writes.',
  }),
  dataDirectory: directory({
    flag: 'data-directory',
    yaml: 'files.dataDirectory',
    default: '<root-directory>/data',
    help: 'Where the store is kept.',
  }),
  certificateDirectory: directory({
    flag: 'cert-dir',
    yaml: 'files.certificateDirectory',
    default: '<root-directory>',
    help: 'Where the server makes and keeps a serving certificate if --tls-cert-file is not given.',
  }),

  startCheckBytesMax: bytes({
    flag: 'start-check-bytes-max',
    yaml: 'files.startCheckBytesMax',
    default: '4GiB',
    min: '0B',
    max: '64TiB',
    help: 'The largest store that the server checks when it starts after a crash; 1 GiB takes seconds. `strata check` has no such limit.',
  }),

  ...listenOptions,

  clientCaFile: file({
    flag: 'client-ca-file',
    yaml: 'tls.clientCaFile',
    help: 'The CAs (PEM) whose client certificates the server accepts; without it everybody is anonymous and the server is not ready.',
  }),
  allowNoClientCa: toggle({
    flag: 'allow-no-client-ca',
    yaml: 'tls.allowNoClientCa',
    default: 'false',
    help: 'Whether a server without --client-ca-file is ready: it answers nothing but health, because everybody is anonymous.',
  }),
  publicPaths: list({
    flag: 'authorization-always-allow-paths',
    yaml: 'authorization.alwaysAllowPaths',
    default: '/healthz,/livez,/readyz',
    pattern: /^\/(?:healthz|livez|readyz|metrics)$/,
    acceptedValues: '/healthz, /livez, /readyz and /metrics, separated by commas',
    help: 'Paths that answer everybody, even without a certificate: the health endpoints always do, and /metrics if it is named here.',
  }),
  tlsCertFile: file({ flag: 'tls-cert-file', yaml: 'tls.certFile', help: 'The serving certificate (PEM), followed by its intermediates.' }),
  tlsPrivateKeyFile: file({ flag: 'tls-private-key-file', yaml: 'tls.privateKeyFile', help: 'The key (PEM) of the serving certificate.' }),
  tlsVersionMin: choice({
    flag: 'tls-min-version',
    yaml: 'tls.versionMin',
    default: 'TLSv1.2',
    words: ['TLSv1.2', 'TLSv1.3'],
    help: 'The oldest version of TLS that is accepted.',
  }),
  tlsCipherSuites: cipherSuites({
    flag: 'tls-cipher-suites',
    yaml: 'tls.cipherSuites',
    help: 'The cipher suites that the server offers; those of OpenSSL when empty. If you name none of TLS 1.3, it offers all of those. If you name only those, it accepts no older version.',
  }),
  tlsFilesPollMs: duration({
    flag: 'tls-files-poll',
    yaml: 'tls.filesPoll',
    default: '30s',
    min: '100ms',
    max: '1h',
    help: 'How often the server reads the serving certificate and the client CA again; on SIGHUP it does so at once.',
  }),

  typesFile: file({
    flag: 'types-file',
    yaml: 'types.file',
    help: 'A YAML file with types besides the built-in ones, and with changes to those. It is read again when it changes.',
  }),

  logLevel: choice({
    flag: 'log-level',
    yaml: 'log.level',
    default: 'info',
    words: logLevels,
    help: 'The least important events that are logged.',
  }),
  logFormat: choice({
    flag: 'log-format',
    yaml: 'log.format',
    default: 'json',
    words: logFormats,
    help: 'Logs for machines or for people.',
  }),
  accessLog: toggle({
    flag: 'access-log',
    yaml: 'log.access',
    default: 'false',
    help: 'Whether the server logs each request: who asked for what, and the outcome; never a query or a body.',
  }),
  metricsSlicesMax: count({
    flag: 'metrics-slices-max',
    yaml: 'metrics.slicesMax',
    default: '1000',
    min: 0,
    max: 1_000_000,
    help: 'The most slices (one type on one shard) for which each slice has seven metric series; with more slices, each shard has them.',
  }),

  queueMutationsMax: count({
    flag: 'queue-mutations-max',
    yaml: 'commit.queueMutationsMax',
    default: '10000',
    min: 1,
    max: 10_000_000,
    help: 'How many mutations may wait to commit; further writes are answered 429.',
  }),
  queueBytesMax: bytes({
    flag: 'queue-bytes-max',
    yaml: 'commit.queueBytesMax',
    default: '64MiB',
    min: '1MiB',
    max: '16GiB',
    help: 'How many bytes of mutations may wait to commit; further writes are answered 429.',
  }),
  commitMutationsMax: count({
    flag: 'commit-mutations-max',
    yaml: 'commit.mutationsMax',
    default: '512',
    min: 1,
    max: 100_000,
    help: 'How many mutations one commit may have.',
  }),
  commitBytesMax: bytes({
    flag: 'commit-bytes-max',
    yaml: 'commit.bytesMax',
    default: '8MiB',
    min: '1MiB',
    max: '1GiB',
    help: 'How many bytes one commit may have.',
  }),

  ...pushOptions,
  ...linkOptions,

  recentBytesMax: bytes({
    flag: 'recent-bytes-max',
    yaml: 'watch.recentBytesMax',
    default: '32MiB',
    min: '0B',
    max: '64GiB',
    help: 'How many bytes of recent objects are kept in memory; others are read from disk.',
  }),
  watcherQueueBytesMax: bytes({
    flag: 'watcher-queue-bytes-max',
    yaml: 'watch.queueBytesMax',
    default: '4MiB',
    min: '64KiB',
    max: '1GiB',
    help: 'How many unsent bytes a watch may hold; beyond that, it continues from the change log.',
  }),
  listChunkBytesMax: bytes({
    flag: 'list-chunk-bytes-max',
    yaml: 'watch.listChunkBytesMax',
    default: '256KiB',
    min: '4KiB',
    max: '64MiB',
    help: 'How many bytes of a list are read and sent at a time.',
  }),
  bookmarkIntervalMs: duration({
    flag: 'bookmark-interval',
    yaml: 'watch.bookmarkInterval',
    default: '60s',
    min: '100ms',
    max: '1h',
    help: 'How often a quiet watch gets a bookmark.',
  }),
  watchTimeoutMinMs: duration({
    flag: 'watch-timeout-min',
    yaml: 'watch.timeoutMin',
    default: '30m',
    min: '1s',
    max: '24h',
    help: 'A watch that asks for no timeout ends at a random time between this and twice this.',
  }),
  watchTimeoutMaxMs: duration({
    flag: 'watch-timeout-max',
    yaml: 'watch.timeoutMax',
    default: '1h',
    min: '1s',
    max: '24h',
    help: 'How long a watch may last, whatever timeout it asks for; then its client opens the next one.',
  }),
  openSelectorBytesMax: bytes({
    flag: 'open-selector-bytes-max',
    yaml: 'watch.openSelectorBytesMax',
    default: '4MiB',
    min: '1KiB',
    max: '1GiB',
    help: 'How many bytes the selectors of all open watches may have together; further watches are answered 429.',
  }),

  ...historyOptions,
  ...etcdOptions,
} as const;

/** A flag or a variable names the file; the file cannot name itself. */
export const configFileOption = {
  flag: 'config',
  help: 'A YAML file with link policies and any of these options; a flag or a variable wins over it.',
} as const;
