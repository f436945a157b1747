/**
 * Runs the program of an exec plugin and returns its standard output. Its standard error is the
 * agent's own, as with client-go, because a plugin writes its messages for people there. It has no
 * standard input.
 *
 * Bounds: `timeoutMs`; `answerBytesMax`. At either, and once the signal is aborted, the program
 * gets SIGTERM, and SIGKILL after `killGraceMs`. The promise settles once the program has ended, so
 * that two runs in a row never overlap. Child processes of the program are not waited for.
 */
import { spawn } from 'node:child_process';
import type { Clock } from '../domain/ports.js';

export type PluginProgram = Readonly<{
  command: string;
  args: readonly string[];
  environment: Readonly<Record<string, string | undefined>>;
}>;

/** A token and a chain of certificates take some ten kilobytes. */
const answerBytesMax = 1024 * 1024;
const killGraceMs = 1_000;

/** The program cannot be started, because it does not exist or is not executable. */
export class PluginMissing extends Error {}

/**
 * Throws PluginMissing, or Error with what is wrong, or the signal's reason. No error has a cause:
 * Node's errors contain the arguments, which may be secrets.
 */
export function runPlugin(
  { command, args, environment }: PluginProgram,
  { clock, timeoutMs, signal }: Readonly<{ clock: Clock; timeoutMs: number; signal: AbortSignal }>,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args], { env: { ...environment }, stdio: ['ignore', 'pipe', 'inherit'] });
    const chunks: Buffer[] = [];
    let bytes = 0;
    let stopped: Error | undefined;
    let cancelKill = (): void => {};

    const stop = (why: Error): void => {
      if (stopped !== undefined) return;
      stopped = why;
      // A child process of the program may hold the pipe open, and would keep this process alive.
      child.stdout.destroy();
      child.kill('SIGTERM');
      cancelKill = clock.after(killGraceMs, () => child.kill('SIGKILL'));
    };
    const abort = (): void => stop(signal.reason as Error);
    const cancelTimeout = clock.after(timeoutMs, () => stop(new Error(`it has not answered within ${timeoutMs / 1_000} s`)));
    signal.addEventListener('abort', abort);
    const end = (result: () => void): void => {
      cancelTimeout();
      cancelKill();
      signal.removeEventListener('abort', abort);
      result();
    };

    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      chunks.push(chunk);
      if (bytes > answerBytesMax) stop(new Error(`its answer is longer than ${answerBytesMax} bytes`));
    });
    child.once('error', (error: NodeJS.ErrnoException) => end(() => reject(new PluginMissing(`it cannot be started (${error.code})`))));
    child.once('close', (code: number | null, name: string | null) =>
      end(() => {
        if (stopped !== undefined) reject(stopped);
        else if (code === 0) resolve(Buffer.concat(chunks).toString('utf8'));
        else reject(new Error(name === null ? `it ended with the exit code ${code}` : `it was ended by ${name}`));
      }),
    );
    if (signal.aborted) abort();
  });
}
