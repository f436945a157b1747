#!/usr/bin/env node
/**
 * The process around the program. Only this file and diagnostics/failpoint.ts use `process`.
 *
 * SIGTERM and SIGINT stop the program. A second signal ends the process at once, with exit code 1.
 * SIGHUP reloads files. SIGUSR1 and SIGUSR2 do nothing.
 *
 * The server is loaded only when it will run, so help and usage errors are fast and need no native
 * module.
 */
import { constants } from 'node:os';
import { basename } from 'node:path';
import type { Log } from './diagnostics/log.js';
import type { ProgramSurroundings } from './program.js';

// This must run before any other module is loaded. Until a listener exists, SIGUSR2 ends the
// process, and Node answers SIGUSR1 by opening its inspector, to which any user of the machine can
// connect.
for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) process.on(signal, () => {});
const endings = ['SIGTERM', 'SIGINT'] as const;
const endAtOnce = (signal: NodeJS.Signals): void => process.exit(128 + constants.signals[signal]);
// The kernel ignores signals to process 1 of a container unless the process listens to them.
if (process.pid === 1) for (const signal of endings) process.on(signal, endAtOnce);

const [{ systemClock }, { exitCodes }, { runProgram }] = await Promise.all([
  import('./clock.js'),
  import('./config/command-line/command-line.js'),
  import('./program.js'),
]);

// The reader of a pipe may close it early: `strata status --watch | head`.
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
    // The server adds its own listener to reload files. An agent polls its files anyway.
    process.on('SIGHUP', () => {});
    return firstSignal();
  },
  onHangUp: (listener) => void process.on('SIGHUP', listener),
  exit: (code) => process.exit(code),
};

/** The first signal begins a stop, which waits for requests under way. */
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

/**
 * An error that nobody awaited or caught is a bug. The state of the process is then unknown, so the
 * process ends.
 */
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
// When the event loop ends by itself, Node 20 frees every handle. After many connections that ended
// abruptly, it sometimes waits for one in a busy loop, for ever. `exit` frees no handles.
process.once('beforeExit', () => process.exit());
