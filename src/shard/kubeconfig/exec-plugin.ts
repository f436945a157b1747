/**
 * The credentials that an exec plugin of a kubeconfig issues, handled as in client-go
 * (plugin/pkg/client/auth/exec/exec.go).
 *
 *  nothing kept ─▶ waits (PluginPace) ─▶ runs ─valid output─▶ kept ─expired, or 401─▶ nothing kept
 *                      ▲                  └─invalid output, exit code, timeout─▶ all who wait fail
 *                      └───────────────────────────────────────────────────────────────┘
 *
 * E1 One run at a time serves all waiting callers. It is stopped once no caller waits.
 * E2 Only valid credentials are kept, and no longer than until their expiry.
 * E3 A 401 drops the credential of that request, and no later one.
 * E4 No error contains any of the output, the arguments or the environment.
 */
import { spawn } from 'node:child_process';
import { CacheError } from '../../domain/errors.js';
import { pause, untilAborted } from '../../domain/base/promises.js';
import type { Clock } from '../../domain/ports.js';
import { pluginEnvironment, type ExecCommand } from './exec-command.js';
import { parseExecCredential, type ExecCredential } from './exec-credential.js';
import { PluginPace } from './plugin-pace.js';

export type ExecPluginParts = Readonly<{
  clock: Clock;
  /** The agent's own environment, which the plugin inherits. */
  environment: Readonly<Record<string, string | undefined>>;
}>;

/**
 * Cloud plugins retry their own requests for some tens of seconds. A run that takes longer than
 * this has hung.
 */
const timeoutMs = 60_000;
/**
 * A request should arrive before its token expires. client-go has the same margin for token files.
 */
const expiryMarginMs = 10_000;

/** `untilMs` is by the wall clock. */
type Kept = Readonly<{ credential: ExecCredential; untilMs: number }>;

export class ExecPlugin {
  readonly #parts: ExecPluginParts;
  readonly #command: ExecCommand;
  readonly #pace: PluginPace;
  #cached: Kept | undefined;
  #run: SharedTask<ExecCredential> | undefined;

  constructor(parts: ExecPluginParts, command: ExecCommand) {
    this.#parts = parts;
    this.#command = command;
    this.#pace = new PluginPace(parts.clock);
  }

  /**
   * `ca`: the cluster's CA, for a plugin whose entry requests it. Rejects with CacheError, or with
   * the signal's reason once the signal is aborted.
   */
  async credential(ca: string | undefined, signal: AbortSignal): Promise<ExecCredential> {
    signal.throwIfAborted();
    if (this.#cached !== undefined && this.#parts.clock.wallMs() < this.#cached.untilMs) return this.#cached.credential;
    if (this.#run === undefined || this.#run.isAborted) this.#run = this.#start(ca, this.#run);
    return this.#run.join(signal);
  }

  /** Called when the shard has answered 401 to a request with the credential. */
  drop(credential: ExecCredential): void {
    if (this.#cached?.credential !== credential) return;
    this.#cached = undefined;
    this.#pace.refused();
  }

  /** `former` was aborted, and may not have ended yet. */
  #start(ca: string | undefined, former: SharedTask<ExecCredential> | undefined): SharedTask<ExecCredential> {
    const run = new SharedTask(async (signal) => {
      try {
        await former?.ended();
        const waitMs = this.#pace.waitMs();
        if (waitMs > 0) await pause(this.#parts.clock, waitMs, signal);
        signal.throwIfAborted();
        return await this.#issue(ca, signal);
      } finally {
        if (this.#run === run) this.#run = undefined;
      }
    });
    return run;
  }

  async #issue(ca: string | undefined, signal: AbortSignal): Promise<ExecCredential> {
    const { clock, environment } = this.#parts;
    const { command, args, apiVersion } = this.#command;
    try {
      const program = { command, args, environment: pluginEnvironment(this.#command, environment, ca) };
      const credential = parseExecCredential(await runPlugin(program, clock, signal), apiVersion);
      this.#keep(credential);
      return credential;
    } catch (error) {
      signal.throwIfAborted();
      this.#pace.failed();
      const hint = error instanceof PluginMissing && this.#command.installHint !== '' ? `\n${this.#command.installHint}` : '';
      throw new CacheError(`the exec plugin ${command} gives no credential: ${(error as Error).message}${hint}`);
    }
  }

  #keep(credential: ExecCredential): void {
    const { expiresMs = Infinity } = credential;
    const earlyMs = expiresMs - expiryMarginMs;
    // A plugin may cache a token until the token expires, so a run within the margin would return
    // the same token.
    this.#cached = { credential, untilMs: this.#parts.clock.wallMs() < earlyMs ? earlyMs : expiresMs };
    this.#pace.issued();
  }
}

type PluginProgram = Pick<ExecCommand, 'command' | 'args'> & Pick<ExecPluginParts, 'environment'>;

/** A token and a chain of certificates take some ten kilobytes. */
const answerBytesMax = 1024 * 1024;
const killGraceMs = 1_000;

/** The program cannot be started, because it does not exist or is not executable. */
class PluginMissing extends Error {}

/**
 * Runs the program of an exec plugin and returns its standard output. The standard error is the
 * agent's own, as with client-go, because plugins write messages for people there. There is no
 * standard input.
 *
 * Bounds: `timeoutMs`; `answerBytesMax`. At either, and once the signal is aborted, the program
 * gets SIGTERM, and SIGKILL after `killGraceMs`. The promise settles once the program has ended, so
 * that two runs in a row never overlap. Child processes of the program are not waited for.
 *
 * Throws PluginMissing, or Error with what is wrong, or the signal's reason. No error has a cause:
 * Node's errors contain the arguments, which may be secrets.
 */
function runPlugin({ command, args, environment }: PluginProgram, clock: Clock, signal: AbortSignal): Promise<string> {
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
  });
}

/** One task with many waiters. It is aborted once nobody waits for it. */
class SharedTask<Result> {
  readonly #abort = new AbortController();
  readonly #result: Promise<Result>;
  #waiting = 0;

  constructor(task: (signal: AbortSignal) => Promise<Result>) {
    this.#result = task(this.#abort.signal);
    // Waiters receive the error; this handler covers a failure after the last waiter has left.
    this.#result.catch(() => {});
  }

  get isAborted(): boolean {
    return this.#abort.signal.aborted;
  }

  /** The result of the task. Rejects with the signal's reason once the signal is aborted. */
  async join(signal: AbortSignal): Promise<Result> {
    this.#waiting += 1;
    try {
      return await untilAborted(this.#result, signal);
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#abort.abort();
    }
  }

  /** Resolves once the task has ended, successfully or not. */
  async ended(): Promise<void> {
    await Promise.allSettled([this.#result]);
  }
}
