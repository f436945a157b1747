/**
 * The credentials that an exec plugin of a kubeconfig issues, handled as in client-go
 * (plugin/pkg/client/auth/exec/exec.go).
 *
 *  nothing kept ─▶ waits (PluginPace) ─▶ runs ─valid output─▶ kept ─expired, or 401─▶ nothing kept
 *                      ▲                  └─invalid output, exit code, timeout─▶ all who wait fail
 *                      └───────────────────────────────────────────────────────────────┘
 *
 * E1 One run at a time serves all who wait. Once nobody waits, it is stopped.
 * E2 Only valid credentials are kept, and no longer than until their expiry.
 * E3 A 401 drops the credential of that request, and no later one.
 * E4 No error contains any of the output, the arguments or the environment.
 */
import { CacheError } from '../domain/errors.js';
import { pause } from '../domain/pause.js';
import type { Clock } from '../domain/ports.js';
import { pluginEnvironment, type ExecCommand } from './exec-command.js';
import { parseExecCredential, type ExecCredential } from './exec-credential.js';
import { PluginPace } from './plugin-pace.js';
import { PluginMissing, runPlugin } from './run-plugin.js';
import { SharedTask } from './shared-task.js';

export type ExecPluginParts = Readonly<{
  clock: Clock;
  /** The agent's own environment, which the plugin inherits. */
  environment: Readonly<Record<string, string | undefined>>;
}>;

/**
 * Plugins of clouds retry their own requests for some tens of seconds. A run that takes longer than
 * this hangs.
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
   * `ca`: the cluster's CA, for a plugin whose entry asks for it. Rejects with CacheError, or with
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
      const credential = parseExecCredential(await runPlugin(program, { clock, timeoutMs, signal }), apiVersion);
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
    // A plugin may cache a token until it expires. Running the plugin earlier would return the same
    // token.
    this.#cached = { credential, untilMs: this.#parts.clock.wallMs() < earlyMs ? earlyMs : expiresMs };
    this.#pace.issued();
  }
}
