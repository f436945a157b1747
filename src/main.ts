#!/usr/bin/env node
/**
 * The process around the program; the only file that knows `process`, beside a failpoint, which ends it.
 *
 * Signals: SIGTERM and SIGINT stop; a second one that cuts a stop short ends the process with 1. SIGHUP reads files again. SIGUSR1, with which Node opens its
 * inspector, and SIGUSR2, which ends a process, do nothing. The server itself is loaded only when it is to run, so that help and usage errors come at once and
 * need no native module.
 */
import { constants } from 'node:os';
import { basename } from 'node:path';
import type { Log } from './diagnostics/log.js';
import type { ProgramSurroundings } from './program.js';

// First of all, before anything of ours is loaded: until somebody listens, Node answers SIGUSR1 by opening its inspector, to which anybody on the machine may then connect.
for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) process.on(signal, () => {});
const endings = ['SIGTERM', 'SIGINT'] as const;
const endAtOnce = (signal: NodeJS.Signals): void => process.exit(128 + constants.signals[signal]);
// The first process of a container is ended by no signal that it does not listen to.
if (process.pid === 1) for (const signal of endings) process.on(signal, endAtOnce);

const [{ systemClock }, { exitCodes }, { runProgram }] = await Promise.all([
  import('./clock.js'),
  import('./config/command-line.js'),
  import('./program.js'),
]);

// Whoever reads what is printed may have enough of it: `strata status --watch | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? exitCodes.done : exitCodes.failed));

const surroundings: ProgramSurroundings = {
  print: (text) => void process.stdout.write(text),
  printError: (text) => void process.stderr.write(text),
  uid: process.getuid?.(),
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
  onHangUp: (listener) => void process.on('SIGHUP', listener),
  exit: (code) => process.exit(code),
};

/** The first signal asks for a stop, which waits for what is under way; a second one ends the process at once. */
function firstSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false;
    const signalled = (signal: NodeJS.Signals): void => {
      if (asked) process.exit(exitCodes.failed);
      asked = true;
      resolve(signal);
    };
    for (const signal of endings) process.off(signal, endAtOnce).on(signal, signalled);
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

const [, script = '', ...args] = process.argv;
const { exitCode, hasFailed } = await runProgram({ called: basename(script), args }, surroundings);
if (hasFailed) process.exit(exitCode);
process.exitCode = exitCode;
