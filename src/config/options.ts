/**
 * Everything that can be tuned. Each bound of design.md §4 is here, each with the unit at the end of its name and its own bounds.
 *
 * Flags that upstream's cache server has are spelled as there, so that one spelling works for both.
 */
import { logFormats, logLevels } from '../diagnostics/log.js';
import { historyOptions } from './history-options.js';
import { linkOptions } from './link-options.js';
import { address, bytes, choice, count, directory, duration, file, toggle } from './option.js';
import { pushOptions } from './push-options.js';

export const options = {
  rootDirectory: directory({
    flag: 'root-directory',
    yaml: 'files.rootDirectory',
    default: '.strata',
    help: 'Where everything this server writes is kept.',
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
    help: 'Where a serving certificate is made and kept when no files are given.',
  }),

  bindAddress: address({
    flag: 'bind-address',
    yaml: 'listen.bindAddress',
    default: '0.0.0.0',
    help: 'The address to listen on; 0.0.0.0 or :: for every interface.',
  }),
  securePort: count({
    flag: 'secure-port',
    yaml: 'listen.securePort',
    default: '6443',
    min: 0,
    max: 65_535,
    help: 'The port to serve HTTPS on; 0 takes any free one.',
  }),
  http2: toggle({ flag: 'http2', yaml: 'listen.http2', default: 'true', help: 'Whether HTTP/2 is offered besides HTTP/1.1.' }),
  http2StreamsMax: count({
    flag: 'http2-max-streams-per-connection',
    yaml: 'listen.http2StreamsMax',
    default: '100',
    min: 1,
    max: 10_000,
    help: 'How many requests one HTTP/2 connection may have open; more make a client open another.',
  }),
  connectionsMax: count({
    flag: 'connections-max',
    yaml: 'listen.connectionsMax',
    default: '10000',
    min: 1,
    max: 1_000_000,
    help: 'How many connections may be open; further ones are closed at once.',
  }),
  requestsInFlightMax: count({
    flag: 'requests-in-flight-max',
    yaml: 'listen.requestsInFlightMax',
    default: '1000',
    min: 1,
    max: 100_000,
    help: 'How many requests other than watches may be under way; further ones are answered 429.',
  }),
  openWatchesMax: count({
    flag: 'open-watches-max',
    yaml: 'listen.openWatchesMax',
    default: '20000',
    min: 1,
    max: 1_000_000,
    help: 'How many watches may be open; further ones are answered 429.',
  }),
  selectorBytesMax: bytes({
    flag: 'selector-bytes-max',
    yaml: 'listen.selectorBytesMax',
    default: '16KiB',
    min: '256B',
    max: '1MiB',
    help: 'The longest label or field selector of a list, a watch or a delete of a collection; a longer one is answered 400.',
  }),
  bodyBytesMax: bytes({
    flag: 'body-bytes-max',
    yaml: 'listen.bodyBytesMax',
    default: '3MiB',
    min: '1KiB',
    max: '64MiB',
    help: 'The largest body of a request; a larger one is answered 413.',
  }),
  handshakeTimeoutMs: duration({
    flag: 'handshake-timeout',
    yaml: 'listen.handshakeTimeout',
    default: '10s',
    min: '100ms',
    max: '5m',
    help: 'How long a TLS handshake may take.',
  }),
  headersTimeoutMs: duration({
    flag: 'headers-timeout',
    yaml: 'listen.headersTimeout',
    default: '10s',
    min: '100ms',
    max: '5m',
    help: 'How long the headers of a request may take to arrive.',
  }),
  requestTimeoutMs: duration({
    flag: 'request-timeout',
    yaml: 'listen.requestTimeout',
    default: '60s',
    min: '1s',
    max: '1h',
    help: 'How long a request other than a watch may take, from its first byte to its answer.',
  }),
  writeTimeoutMs: duration({
    flag: 'write-timeout',
    yaml: 'listen.writeTimeout',
    default: '34s',
    min: '1s',
    max: '1h',
    help: 'How long a write may take to be answered.',
  }),
  keepAliveTimeoutMs: duration({
    flag: 'keep-alive-timeout',
    yaml: 'listen.keepAliveTimeout',
    default: '2m',
    min: '1s',
    max: '1h',
    help: 'How long a connection may stand idle; longer than the 90 s of Go clients, which do not repeat a write that meets a closing one.',
  }),
  shutdownGraceMs: duration({
    flag: 'shutdown-grace',
    yaml: 'listen.shutdownGrace',
    default: '10s',
    min: '0s',
    max: '10m',
    help: 'How long requests under way may go on after a stop is asked for.',
  }),
  syntheticDelayMs: duration({
    flag: 'synthetic-delay',
    yaml: 'listen.syntheticDelay',
    default: '0s',
    min: '0s',
    max: '1h',
    help: 'Delays every request, to try out a slow network.',
  }),

  clientCaFile: file({
    flag: 'client-ca-file',
    yaml: 'tls.clientCaFile',
    help: 'The CAs (PEM) whose client certificates are believed; without it everybody is anonymous.',
  }),
  tlsCertFile: file({ flag: 'tls-cert-file', yaml: 'tls.certFile', help: 'The serving certificate (PEM), followed by its intermediates.' }),
  tlsPrivateKeyFile: file({ flag: 'tls-private-key-file', yaml: 'tls.privateKeyFile', help: 'The key (PEM) of the serving certificate.' }),
  tlsVersionMin: choice({
    flag: 'tls-min-version',
    yaml: 'tls.versionMin',
    default: 'TLSv1.2',
    words: ['TLSv1.2', 'TLSv1.3'],
    help: 'The oldest version of TLS that is spoken.',
  }),
  tlsFilesPollMs: duration({
    flag: 'tls-files-poll',
    yaml: 'tls.filesPoll',
    default: '30s',
    min: '100ms',
    max: '1h',
    help: 'How often the files of the serving certificate are looked at for a newer pair.',
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
    help: 'How many mutations make one commit at most.',
  }),
  commitBytesMax: bytes({
    flag: 'commit-bytes-max',
    yaml: 'commit.bytesMax',
    default: '8MiB',
    min: '1MiB',
    max: '1GiB',
    help: 'How many bytes make one commit at most.',
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
    help: 'How many unsent bytes one watch may hold; beyond it reads on from the change log.',
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
    help: 'How often a quiet watch is told how far it has come.',
  }),
  watchTimeoutMinMs: duration({
    flag: 'watch-timeout-min',
    yaml: 'watch.timeoutMin',
    default: '30m',
    min: '1s',
    max: '24h',
    help: 'A watch that names no timeout ends after this to twice this.',
  }),

  ...historyOptions,
} as const;

/** The file itself is named by a flag or a variable, never by a file. */
export const configFileOption = {
  flag: 'config',
  help: 'A YAML file with any of these options, over which a flag or a variable wins, and with edge policies.',
} as const;
