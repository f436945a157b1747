/**
 * The link policies of the configuration file, applied while the server runs. The file is polled, because a mounted file is swapped by a symbolic
 * link that file watching loses; its text is compared, because its times may not change.
 *
 *   another text ──▶ sound? ──yes──▶ other policies? ──yes──▶ published
 *                      │no           other settings? ──yes──▶ logged: they need a restart
 *                      └──▶ logged with its lines, the old policies stay
 */
import { isDeepStrictEqual } from 'node:util';
import type { Log } from '../diagnostics/log.js';
import { CacheError } from '../domain/errors.js';
import type { LinkPolicies } from '../domain/link-policies.js';
import type { Clock } from '../domain/ports.js';
import type { Reloadable, Reloaded } from '../domain/reloaded.js';
import { idleLinks } from './idle-links.js';
import { options } from './options.js';
import type { Option } from './option.js';
import { configFileOf, linkPoliciesOf, loadSettings, type Settings, type SettingsSources } from './settings.js';
import { SettingsError } from './settings-error.js';

export type PolicyFileParts = Readonly<{
  clock: Clock;
  log: Log;
  /** What `running` was loaded from. */
  sources: SettingsSources;
  running: Settings;
}>;

export class PolicyFile {
  readonly #parts: PolicyFileParts;
  readonly #path: string;
  readonly #publish: (policies: LinkPolicies) => void;
  /** The text of the file, or of the error that kept it from being read; undefined before the first look. */
  #seen: string | undefined;
  /** Whether the last text could not be used: another reload reports that again. */
  #isUnsound = false;
  #policies: LinkPolicies;
  #cancel: () => void = () => {};

  private constructor(parts: PolicyFileParts, path: string, publish: (policies: LinkPolicies) => void) {
    this.#parts = parts;
    this.#path = path;
    this.#publish = publish;
    this.#policies = linkPoliciesOf(parts.running);
  }

  /** Calls `publish` with each new, sound policies. The first look is one poll away. Without a file there is nothing to watch. */
  static watch(parts: PolicyFileParts, publish: (policies: LinkPolicies) => void): Reloadable | undefined {
    const path = configFileOf(parts.sources);
    if (path === undefined) return undefined;
    const watched = new PolicyFile(parts, path, publish);
    watched.#wait();
    return { reload: () => watched.#look(), close: () => watched.#cancel() };
  }

  #wait(): void {
    const { clock, running } = this.#parts;
    this.#cancel = clock.after(running.policyPollMs, () => {
      this.#look();
      this.#wait();
    });
  }

  #look(): Reloaded {
    const { log, sources } = this.#parts;
    const file = this.#path;
    let text: string;
    try {
      text = sources.readFile(file);
    } catch (cause) {
      const { message } = cause as Error;
      if (this.#isNew(message)) log.warn('policies.unreadable', { file, message });
      return { kind: 'failed', error: new CacheError(`${file} cannot be read`, { cause }) };
    }
    const isNew = this.#isNew(text);
    try {
      if (isNew || this.#isUnsound) return this.#takeUp(loadSettings({ ...sources, readFile: () => text }));
      return { kind: 'unchanged' };
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      this.#isUnsound = true;
      if (isNew) log.warn('policies.invalid', { file, problems: error.problems });
      return { kind: 'failed', error };
    }
  }

  #isNew(seen: string): boolean {
    const isNew = seen !== this.#seen;
    this.#seen = seen;
    return isNew;
  }

  #takeUp(settings: Settings): Reloaded {
    this.#isUnsound = false;
    const { log, running } = this.#parts;
    const policies = linkPoliciesOf(settings);
    const waiting = Object.entries<Option<unknown>>(options).filter(
      ([key]) => !isDeepStrictEqual(valueOf(settings, key), valueOf(running, key)),
    );
    if (waiting.length > 0) log.warn('settings.need-restart', { file: this.#path, options: waiting.map(([, { flag }]) => `--${flag}`) });
    if (isDeepStrictEqual(policies, this.#policies)) return { kind: 'unchanged' };
    this.#policies = policies;
    log.info('policies.reloaded', { file: this.#path });
    const before = idleLinks(running);
    for (const warning of idleLinks(settings)) if (!before.includes(warning)) log.warn('links.idle', { warning });
    this.#publish(policies);
    return { kind: 'changed' };
  }
}

function valueOf(settings: Settings, key: string): unknown {
  return Object.entries(settings).find(([name]) => name === key)?.[1];
}
