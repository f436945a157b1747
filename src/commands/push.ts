/**
 * `strata push`: the agent of one kcp shard. This file only connects the parts: the agent reads the
 * shard, and the sender carries the objects into the cache. A signal ends the command with success.
 * The command fails, with the reason, if the cache refuses the agent, or if the source turns out to
 * be a cache.
 *
 * The certificate for the cache is read again for each connection, and the files of the kubeconfig
 * for each request. So rotated files need no restart.
 */
import { randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { certificatesIn, CertificateExpiry } from '../certificates/certificate-expiry.js';
import { pollFiles } from '../certificates/polled-files.js';
import { faultOfDates, readAuthorities, readPair, readText } from '../certificates/pair-files.js';
import { agentOptions } from '../config/options/command-options.js';
import type { CommandValues } from '../config/command-line/command-values.js';
import type { BindAddress } from '../config/options/option.js';
import { TypesFile } from '../config/files/types-file.js';
import { createLog, type Log } from '../diagnostics/log.js';
import { CacheError } from '../domain/errors.js';
import type { Clock } from '../domain/ports.js';
import type { Reloadable } from '../domain/base/reloaded.js';
import type { ClientIdentity } from '../frames/connect-socket.js';
import { connectPath } from '../frames/socket-options.js';
import type { SenderEnd } from '../sender/sender-state.js';
import type { Sender } from '../sender/sender.js';
import { version } from '../version.js';
import type { MetricsListener } from '../http/metrics-listener.js';
import { command, type Command } from './command.js';
import type { DescribedAgent } from './describe-agent.js';
import { formatProgress } from './terminal-text.js';

const progressIntervalMs = 1_000;
const certificatesCheckMs = 60_000;
const shardCheckMs = 5_000;
/** As often as a server polls the file by default. */
const typesCheckMs = 10_000;

const fencedAdvice =
  'If another agent has the shard, start this one again: it waits, or with --take-over it takes the shard at once. ' +
  'If the shard was removed, do not start this agent again, because it would bring the shard back';

export const push: Command = command({
  words: ['push'],
  operands: '',
  help: 'Push the objects of a kcp shard into a cache',
  options: agentOptions,
  run: async ({ options }, { print, environment, clock, random, logStream, untilStopped }) => {
    const {
      kubeconfig,
      context,
      allowInsecure,
      shardName: shard,
      caches,
      systemClusters,
      pushesPaths,
      takesOver,
      logLevel: level,
      logFormat: format,
      metricsBindAddress,
    } = options;
    // Loaded only when the command runs, so that help is fast.
    const [{ loadKubeconfig }, { ShardAgent }, { Sender }, { defaultSenderBounds }, { connectSocket, defaultConnectOptions }] =
      await Promise.all([
        import('../shard/kubeconfig/kubeconfig.js'),
        import('../shard/agent.js'),
        import('../sender/sender.js'),
        import('../sender/sender-options.js'),
        import('../frames/connect-socket.js'),
      ]);
    const log = createLog({ clock, stream: logStream }, { level, format });
    const access = await loadKubeconfig(
      { path: kubeconfig, context: context === '' ? undefined : context, allowInsecure },
      { clock, log, environment },
    );
    readIdentity(options);
    const typesFile = new TypesFile(options.typesFile);

    const stopping = new AbortController();
    void untilStopped(log).then((signal) => {
      log.info('agent.stopping', { signal });
      stopping.abort();
    });
    const sender = new Sender(
      {
        clock,
        random,
        turn,
        log,
        connect: async (url, signal) => connectSocket(url, readIdentity(options), { clock, signal }, defaultConnectOptions),
      },
      {
        ...defaultSenderBounds,
        shard,
        process: randomUUID(),
        takesOver,
        urls: caches.map((cache) => `${cache}${connectPath}`),
        agent: `strata ${version()}`,
      },
    );
    const agent = new ShardAgent(
      { access, sink: sender, clock, random, log },
      { shard, types: typesFile.types, systemClusters, pushesPaths, userAgent: `strata/${version()} (push)` },
    );
    const ofCache = () => certificatesIn('cache', options.certFile, readText(options.certFile, 'certificate for the cache'));
    const expiry = new CertificateExpiry({ clock, log }, [access.certificates, ofCache]);
    const polledTypes = typesFile.polled((next) => agent.replaceTypes(next));
    let types: Reloadable | undefined;
    let sourceIsCache: CacheError | undefined;
    const isACache = (error: CacheError): void => {
      sourceIsCache = error;
      stopping.abort();
    };
    void agent.sourceIsCache.then(isACache);
    const listener = await openMetrics({ sender, agent, expiry, stopping: stopping.signal }, { clock, log }, metricsBindAddress);
    try {
      await agent.checkSource(stopping.signal);
      if (listener !== undefined) void agent.watchSource(shardCheckMs, stopping.signal).catch(isACache);
      expiry.watch(certificatesCheckMs);
      agent.start();
      types = polledTypes && pollFiles({ clock, log }, polledTypes, typesCheckMs);
      log.info('agent.started', { shard, source: access.server, caches });
      const [end] = await Promise.all([sender.run(stopping.signal), printProgress(sender, { clock, print, until: stopping.signal })]);
      if (sourceIsCache !== undefined) throw sourceIsCache;
      if (end.kind === 'refused') throw refused(shard, end, faultOfDates(readIdentity(options).certificate, clock.wallMs()));
    } finally {
      stopping.abort();
      types?.close();
      agent.close();
      expiry.close();
      await listener?.close();
    }
    log.info('agent.stopped');
  },
});

async function openMetrics(
  described: DescribedAgent,
  { clock, log }: Readonly<{ clock: Clock; log: Log }>,
  address: BindAddress | undefined,
): Promise<MetricsListener | undefined> {
  if (address === undefined) return undefined;
  const [{ describeAgent }, { MetricsListener }] = await Promise.all([
    import('./describe-agent.js'),
    import('../http/metrics-listener.js'),
  ]);
  const options = { ...address, flag: agentOptions.metricsBindAddress.flag };
  const listener = await MetricsListener.open({ ...describeAgent(described), clock, log }, options);
  log.info('agent.metrics.listening', { host: address.host, port: listener.port });
  return listener;
}

/** `fault`: why the dates of the agent's certificate forbid its use. */
function refused(shard: string, { reason, message }: SenderEnd & { kind: 'refused' }, fault: string | undefined): CacheError {
  const ofCertificate = fault === undefined ? '' : `. The certificate of this agent ${fault}`;
  const advice = reason === 'fenced' ? `. ${fencedAdvice}` : ofCertificate;
  return new CacheError(`the cache does not let this agent push for the shard ${shard} (${reason}): ${message}${advice}`);
}

function readIdentity({ caFile, certFile, keyFile }: CommandValues<typeof agentOptions>): ClientIdentity {
  const { cert: certificate, key } = readPair({ certFile, keyFile }, { cert: agentOptions.certFile.flag, key: agentOptions.keyFile.flag });
  const ca = caFile === undefined ? undefined : readAuthorities(caFile, 'CA of the cache', agentOptions.caFile.flag);
  return { ca, caFile, certificate, key };
}

type Printing = Readonly<{ clock: Clock; print: (text: string) => void; until: AbortSignal }>;

/**
 * Prints a line when the first sync has progressed. Resolves when that sync is done, when the
 * sender has ended, or when `until` aborts. A sender that stops resets the state of its slices, so
 * nothing more is printed.
 */
async function printProgress(sender: Sender, { clock, print, until }: Printing): Promise<void> {
  let last = '';
  let isStandby = false;
  let nextMs = clock.now();
  for await (const state of sender.states(until)) {
    if (until.aborted) return;
    const isThrough = state.slices.every(({ phase }) => phase === 'synced');
    const line = formatProgress(state);
    if (state.connection.kind === 'standby' && !isStandby) print('another agent pushes for the shard; this one waits until it is gone\n');
    isStandby = state.connection.kind === 'standby';
    const isDue = isThrough || clock.now() >= nextMs;
    if (isDue && line !== last && state.connection.kind === 'connected') {
      print(`${line}\n`);
      last = line;
      nextMs = clock.now() + progressIntervalMs;
    }
    if (isThrough) return;
  }
}
