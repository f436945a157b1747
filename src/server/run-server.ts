/**
 * The command `serve`: runs a server from its settings until a signal or its own failure ends it.
 */
import type { Surroundings } from '../commands/command.js';
import { exitCodes } from '../config/command-line/command-line.js';
import { idleLinks, PolicyFile } from '../config/files/policy-file.js';
import { loadSettings, type SettingsSources } from '../config/settings.js';
import { SettingsError } from '../config/settings-error.js';
import { failpointVariable } from '../diagnostics/failpoint.js';
import { createLog, type Log } from '../diagnostics/log.js';
import { explain } from '../domain/errors.js';
import type { Reloaded } from '../domain/base/reloaded.js';
import type { ServerParts } from './server.js';
import { version } from '../version.js';

export type ServerSurroundings = Surroundings &
  Readonly<{
    /**
     * From the first call on, SIGHUP calls the listener. Without a listener SIGHUP ends the
     * process.
     */
    onHangUp: (listener: () => void) => void;
    exit: (code: number) => void;
  }>;

/** `warnings`: flags that are ignored, for the log. */
export type ServerStart = Readonly<{ sources: SettingsSources; warnings: readonly string[]; frontDoor?: ServerParts['frontDoor'] }>;

export async function runServer(surroundings: ServerSurroundings, { sources, warnings, frontDoor }: ServerStart): Promise<void> {
  const { clock, environment, random, exit } = surroundings;
  const hangUp = new HangUp(surroundings);
  const settings = loadSettings(sources);
  if (frontDoor !== undefined && settings.parentUrls.length === 0)
    throw new SettingsError(['a front door needs the cache above that it follows: --parent-urls (STRATA_PARENT_URLS)']);
  const log = createLog({ clock, stream: surroundings.logStream }, { level: settings.logLevel, format: settings.logFormat });
  for (const warning of warnings) log.warn('flags.ignored', { warning });
  if (settings.clientCaFile === undefined)
    log.warn('client-ca.missing', { consequence: 'everybody is anonymous and refused', ready: settings.allowNoClientCa });

  for (const warning of idleLinks(settings)) log.warn('links.idle', { warning });
  const failpoint = environment[failpointVariable] ?? '';
  if (failpoint !== '') log.warn('failpoint.armed', { failpoint, consequence: 'the process kills itself there' });

  const stopAsked = surroundings.untilStopped(log);
  void stopAsked.then((signal) => log.info('server.stopping', { signal }));
  const { startServer } = await import('./server.js');
  const watchPolicies: ServerParts['watchPolicies'] = (publish) => PolicyFile.watch({ clock, log, sources, running: settings }, publish);
  const server = await startServer(settings, { log, clock, random, watchPolicies, frontDoor });
  const { dataDirectory, etcdServers, etcdPrefix, parentUrls } = settings;
  const store = etcdServers.length === 0 ? { dataDirectory } : { etcdServers, etcdPrefix };
  log.info('server.started', { url: server.url, version: version(), ...store, ...(parentUrls.length === 0 ? {} : { parentUrls }) });
  hangUp.answer(() => logReloaded(log, server.reload()));
  void stopAsked.then(() => hangUp.answer(() => log.info('server.not-reloaded', { why: 'it is stopping' })));

  const end = await Promise.race([stopAsked, server.failed]);
  if (end instanceof Error) {
    log.error('server.failed', { error: end });
    return exit(exitCodes.failed);
  }
  await server.stop();
  log.info('server.stopped', { signal: end });
  exit(exitCodes.done);
}

/**
 * Handles SIGHUP, which would otherwise end the process. A SIGHUP that arrives before the server is
 * up is handled once it is up.
 */
class HangUp {
  #isWaiting = false;
  #answer: (() => void) | undefined;

  constructor({ onHangUp }: Pick<ServerSurroundings, 'onHangUp'>) {
    onHangUp(() => {
      if (this.#answer === undefined) this.#isWaiting = true;
      else this.#answer();
    });
  }

  answer(answer: () => void): void {
    this.#answer = answer;
    if (this.#isWaiting) answer();
    this.#isWaiting = false;
  }
}

/** Writes one line for a whole reload: changed, unchanged and failed parts. */
function logReloaded(log: Log, reloaded: ReadonlyMap<string, Reloaded>): void {
  const named = (kind: Reloaded['kind']): readonly string[] => [...reloaded].filter(([, each]) => each.kind === kind).map(([what]) => what);
  const failed = Object.fromEntries([...reloaded].flatMap(([what, each]) => (each.kind === 'failed' ? [[what, explain(each.error)]] : [])));
  log[Object.keys(failed).length > 0 ? 'warn' : 'info']('server.reloaded', {
    changed: named('changed'),
    unchanged: named('unchanged'),
    failed,
  });
}
