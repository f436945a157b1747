#!/usr/bin/env node
/**
 * The command line; the only file that knows `process`, beside a failpoint, which ends it.
 *
 * Exit codes: those of `exitCodes`, and those that a command declares. A second signal that cuts a stop short ends it with 1.
 * Signals: SIGTERM and SIGINT stop, SIGHUP reads files again. SIGUSR1, with which Node opens its inspector, and SIGUSR2, which ends a process, do nothing.
 * Started under the name `cache-server` or `kcp-front-proxy` it is that program of kcp's, flags and all. The server itself is loaded only when
 * it is to run, so that help and usage errors come at once and need no native module.
 */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { CommanderError } from 'commander';
import { commandGroups, commands } from './commands/commands.js';
import type { Surroundings } from './commands/command.js';
import { exitCodeOf, exitCodes, runCommandLine, type DeclaredCommand } from './config/command-line.js';
import { formatCompletion, shells } from './config/completion.js';
import { proxyOptions } from './config/command-options.js';
import { followedByFrontDoor } from './config/front-door-policy.js';
import { readCommandValues } from './config/command-values.js';
import { configFileOption, options } from './config/options.js';
import { idleLinks } from './config/idle-links.js';
import { PolicyFile } from './config/policy-file.js';
import { loadSettings, type SettingsSources } from './config/settings.js';
import { SettingsError } from './config/settings-error.js';
import { cacheServerDefaults, cacheServerFlags } from './config/cache-server-flags.js';
import { frontProxyDefaults, frontProxyFlags } from './config/front-proxy-flags.js';
import { describeUpstreamFlags, readUpstreamFlags, type UpstreamTable } from './config/upstream-flags.js';
import { systemClock } from './clock.js';
import { failpointVariable } from './diagnostics/failpoint.js';
import { createLog, type Log } from './diagnostics/log.js';
import type { Reloaded } from './domain/reloaded.js';
import type { ServerParts } from './server.js';
import { version } from './version.js';

// First of all: until somebody listens, Node answers SIGUSR1 by opening its inspector, to which anybody on the machine may then connect.
for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) process.on(signal, () => {});

// Whoever reads what is printed may have enough of it: `strata status --watch | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? exitCodes.done : exitCodes.failed));

const surroundings: Surroundings = {
  print: (text) => void process.stdout.write(text),
  isTerminal: process.stdout.isTTY === true,
  environment: process.env,
  clock: systemClock,
  random: Math.random,
  logStream: process.stderr,
  untilStopped: (log) => {
    exitOnBugs(log);
    // A server reads its files again then. An agent reads them again all the time.
    process.on('SIGHUP', () => {});
    return firstSignal();
  },
};

const completion: DeclaredCommand = {
  words: ['completion'],
  operands: '<shell>',
  help: `Print what a shell completes commands and flags by: ${shells.join(', ')}`,
  options: [],
  run: async ({ operands: [text] }) => {
    const shell = shells.find((name) => name === text);
    if (shell === undefined) throw new SettingsError([`${JSON.stringify(text)} is none of ${shells.join(', ')}`]);
    surroundings.print(formatCompletion(shell, { name: 'strata', commands: everyCommand() }));
  },
};

const serve: DeclaredCommand = {
  words: ['serve'],
  operands: '',
  help: 'Run a cache server',
  options: [{ ...configFileOption, placeholder: 'file', default: undefined }, ...Object.values(options)],
  run: ({ flags }) => run(sourcesOf(flags, {}), []),
};

const proxy: DeclaredCommand = {
  words: ['proxy'],
  operands: '',
  help: 'Run the front door of an installation: requests go to the shard that has what their path leads to',
  options: [{ ...configFileOption, placeholder: 'file', default: undefined }, ...Object.values(options), ...Object.values(proxyOptions)],
  run: ({ flags }) => runProxy(flags, {}, []),
};

/** A program of kcp's that this one can stand in for, by its name. */
type InPlaceOf = Readonly<{
  what: string;
  table: UpstreamTable;
  run: (flags: SettingsSources['flags'], warnings: readonly string[]) => Promise<void>;
}>;

const inPlaceOf: Readonly<Record<string, InPlaceOf>> = {
  'cache-server': {
    what: 'cache server',
    table: cacheServerFlags,
    run: (flags, warnings) => run(sourcesOf(flags, cacheServerDefaults), warnings),
  },
  'kcp-front-proxy': {
    what: 'front proxy',
    table: frontProxyFlags,
    run: (flags, warnings) => runProxy(flags, frontProxyDefaults, warnings),
  },
};

/** Listed only for the help: commander would read some of upstream's flags as its own, so they never get here. */
const inPlaceHelp: readonly DeclaredCommand[] = Object.entries(inPlaceOf).map(([name, { what }]) => ({
  words: [name],
  operands: '',
  help: `Run a ${what} with the flags of kcp's own; --help lists them`,
  options: [],
  run: () => runInPlaceOf(name, []),
}));

async function runInPlaceOf(name: string, args: readonly string[]): Promise<void> {
  const program = inPlaceOf[name]!;
  const read = readUpstreamFlags(args, program.table);
  switch (read.kind) {
    case 'help':
      process.stdout.write(upstreamHelp(name, program));
      return;
    case 'version':
      process.stdout.write(`${version()}\n`);
      return;
    case 'refused':
      throw new SettingsError(read.problems);
    case 'read':
      return program.run(read.flags, read.warnings);
  }
}

async function runProxy(
  flags: SettingsSources['flags'],
  defaults: Readonly<Record<string, string>>,
  warnings: readonly string[],
): Promise<void> {
  const frontDoor = readCommandValues(proxyOptions, { flags, environment: process.env });
  const own: readonly string[] = Object.values(proxyOptions).map(({ flag }) => flag);
  const others = Object.fromEntries(Object.entries(flags).filter(([flag]) => !own.includes(flag)));
  return run({ ...sourcesOf(others, defaults), followed: followedByFrontDoor }, warnings, frontDoor);
}

function sourcesOf(flags: SettingsSources['flags'], defaults: Readonly<Record<string, string>>): SettingsSources {
  return { flags, defaults, environment: process.env, readFile: (path) => readFileSync(path, 'utf8') };
}

/** Runs a server until a signal or its own failure ends it. */
async function run(sources: SettingsSources, warnings: readonly string[], frontDoor?: ServerParts['frontDoor']): Promise<void> {
  const hangUp = new HangUp();
  const settings = loadSettings(sources);
  if (frontDoor !== undefined && settings.parentUrls.length === 0)
    throw new SettingsError(['a front door needs the cache above that it follows: --parent-urls (STRATA_PARENT_URLS)']);
  const log = createLog({ clock: systemClock, stream: process.stderr }, { level: settings.logLevel, format: settings.logFormat });
  for (const warning of warnings) log.warn('flags.ignored', { warning });
  if (settings.clientCaFile === undefined)
    log.warn('client-ca.missing', { consequence: 'everybody is anonymous and refused', ready: settings.allowNoClientCa });

  for (const warning of idleLinks(settings)) log.warn('links.idle', { warning });
  const failpoint = process.env[failpointVariable] ?? '';
  if (failpoint !== '') log.warn('failpoint.armed', { failpoint, consequence: 'the process kills itself there' });

  const stopAsked = surroundings.untilStopped(log);
  void stopAsked.then((signal) => log.info('server.stopping', { signal }));
  const { startServer } = await import('./server.js');
  const watchPolicies: ServerParts['watchPolicies'] = (publish) =>
    PolicyFile.watch({ clock: systemClock, log, sources, running: settings }, publish);
  const server = await startServer(settings, { log, clock: systemClock, random: Math.random, watchPolicies, frontDoor });
  const { dataDirectory, etcdServers, etcdPrefix, parentUrls } = settings;
  const store = etcdServers.length === 0 ? { dataDirectory } : { etcdServers, etcdPrefix };
  log.info('server.started', { url: server.url, version: version(), ...store, ...(parentUrls.length === 0 ? {} : { parentUrls }) });
  hangUp.answer(() => logReloaded(log, server.reload()));
  void stopAsked.then(() => hangUp.answer(() => log.info('server.not-reloaded', { why: 'it is stopping' })));

  const end = await Promise.race([stopAsked, server.failed]);
  if (end instanceof Error) {
    log.error('server.failed', { error: end });
    process.exit(exitCodes.failed);
  }
  await server.stop();
  log.info('server.stopped', { signal: end });
  process.exit(exitCodes.done);
}

/** SIGHUP, which by itself would end the process. One that comes before the server is up is handled once it is. */
class HangUp {
  #isWaiting = false;
  #answer: (() => void) | undefined;

  constructor() {
    process.on('SIGHUP', () => {
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

/** One line for all: what changed, what did not, and what cannot be used. */
function logReloaded(log: Log, reloaded: ReadonlyMap<string, Reloaded>): void {
  const named = (kind: Reloaded['kind']): readonly string[] => [...reloaded].filter(([, each]) => each.kind === kind).map(([what]) => what);
  const failed = Object.fromEntries([...reloaded].flatMap(([what, each]) => (each.kind === 'failed' ? [[what, explain(each.error)]] : [])));
  log[Object.keys(failed).length > 0 ? 'warn' : 'info']('server.reloaded', {
    changed: named('changed'),
    unchanged: named('unchanged'),
    failed,
  });
}

/** The first signal asks for a stop, which waits for what is under way; a second one ends the process at once. */
function firstSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false;
    const signalled = (signal: NodeJS.Signals): void => {
      if (asked) process.exit(exitCodes.failed);
      asked = true;
      resolve(signal);
    };
    process.on('SIGTERM', signalled);
    process.on('SIGINT', signalled);
  });
}

/** An error that nobody awaited or caught is a bug: the state of the process is unknown, and only a new one is right again. */
function exitOnBugs(log: Log): void {
  const crash = (error: unknown): void => {
    log.error('process.crashed', { error });
    process.exit(exitCodes.failed);
  };
  process.on('unhandledRejection', crash);
  process.on('uncaughtException', crash);
}

function everyCommand(): readonly DeclaredCommand[] {
  return [serve, proxy, ...inPlaceHelp, ...commands.map((command) => command(surroundings)), completion];
}

function upstreamHelp(name: string, { what, table }: InPlaceOf): string {
  const lines = describeUpstreamFlags(table).map(
    ({ flag, meaning }) => `  ${`${flag.length === 1 ? '-' : '--'}${flag}`.padEnd(46)} ${meaning}`,
  );
  return `Usage: ${name} [flags]\n\nRuns strata in the place of kcp's ${what}.\n\n${lines.join('\n')}\n`;
}

/** One clear line with every cause: its reader has no log yet. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${explain(error.cause)}`;
}

async function main(): Promise<void> {
  const [, script = '', ...args] = process.argv;
  const called = basename(script);
  const [first = '', ...rest] = args;
  const name = Object.hasOwn(inPlaceOf, called) ? called : 'strata';
  try {
    if (name !== 'strata') await runInPlaceOf(name, args);
    else if (Object.hasOwn(inPlaceOf, first)) await runInPlaceOf(first, rest);
    else {
      process.exitCode = await runCommandLine(
        {
          name,
          description: 'A hierarchical cache server for kcp',
          version: version(),
          groups: commandGroups,
          commands: everyCommand(),
        },
        args,
      );
    }
  } catch (error) {
    const exitCode = exitCodeOf(error);
    if (exitCode === exitCodes.done) return;
    // Its help is on standard error already.
    if (!(error instanceof CommanderError && error.code === 'commander.help'))
      process.stderr.write(`${name}: ${explain(error).replace(/^error: /, '')}\n`);
    process.exit(exitCode);
  }
}

await main();
