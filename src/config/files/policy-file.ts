/**
 * Applies the link policies of the configuration file while the server runs. The file is polled,
 * because Kubernetes changes a mounted file by switching a symbolic link, which file watchers miss.
 * Its text is compared, because its times may not change.
 *
 *   new text ─▶ valid? ─yes─▶ policies changed? ─yes─▶ published
 *                 │no         settings changed? ─yes─▶ logged: they need a restart
 *                 └─▶ logged with its lines, the old policies stay
 */
import { isDeepStrictEqual } from 'node:util';
import type { Log } from '../../diagnostics/log.js';
import { CacheError } from '../../domain/errors.js';
import { shardsNamedBy, type LinkPolicies } from '../../domain/link-policies.js';
import type { Clock } from '../../domain/ports.js';
import type { Reloadable, Reloaded } from '../../domain/base/reloaded.js';
import { options } from '../options/options.js';
import { configFileOf, linkPoliciesOf, loadSettings, type Settings, type SettingsSources } from '../settings.js';
import { emptied, SettingsError } from '../settings-error.js';

export type PolicyFileParts = Readonly<{
  clock: Clock;
  log: Log;
  /** The sources from which `running` was loaded. */
  sources: SettingsSources;
  running: Settings;
}>;

export class PolicyFile {
  readonly #parts: PolicyFileParts;
  readonly #path: string;
  readonly #publish: (policies: LinkPolicies) => void;
  /**
   * The last text of the file, or the last error of reading it; undefined before the first poll.
   */
  #seen: string | undefined;
  /** Whether the last text was invalid. A reload then reports the error again. */
  #isUnsound = false;
  #policies: LinkPolicies;
  #cancel: () => void = () => {};

  private constructor(parts: PolicyFileParts, path: string, publish: (policies: LinkPolicies) => void) {
    this.#parts = parts;
    this.#path = path;
    this.#publish = publish;
    this.#policies = linkPoliciesOf(parts.running);
  }

  /**
   * Calls `publish` with each changed, valid set of policies. The first check follows after one
   * poll interval. Undefined without a configuration file.
   */
  static watch(parts: PolicyFileParts, publish: (policies: LinkPolicies) => void): Reloadable | undefined {
    const path = configFileOf(parts.sources);
    if (path === undefined) return undefined;
    const watched = new PolicyFile(parts, path, publish);
    watched.#wait();
    return { reload: () => watched.#reload(), close: () => watched.#cancel() };
  }

  #wait(): void {
    const { clock, running } = this.#parts;
    this.#cancel = clock.after(running.policyPollMs, () => {
      this.#reload();
      this.#wait();
    });
  }

  #reload(): Reloaded {
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
      if (!isNew && !this.#isUnsound) return { kind: 'unchanged' };
      const settings = loadSettings({ ...sources, readFile: () => text });
      if (text === '' && !isDeepStrictEqual(linkPoliciesOf(settings), this.#policies)) throw new SettingsError([emptied(file)]);
      return this.#apply(settings);
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

  #apply(settings: Settings): Reloaded {
    this.#isUnsound = false;
    const { log, running } = this.#parts;
    const policies = linkPoliciesOf(settings);
    const keys = Object.keys(options) as (keyof typeof options)[];
    const waiting = keys.filter((key) => !isDeepStrictEqual(settings[key], running[key]));
    if (waiting.length > 0)
      log.warn('settings.need-restart', { file: this.#path, options: waiting.map((key) => `--${options[key].flag}`) });
    if (isDeepStrictEqual(policies, this.#policies)) return { kind: 'unchanged' };
    this.#policies = policies;
    log.info('policies.reloaded', { file: this.#path });
    const before = idleLinks(running);
    for (const warning of idleLinks(settings)) if (!before.includes(warning)) log.warn('links.idle', { warning });
    this.#publish(policies);
    return { kind: 'changed' };
  }
}

/**
 * Finds links whose policies let nothing pass, which is probably a mistake. Returns one sentence
 * each, for the log.
 */
export function idleLinks({ parentUrls, parentForward, parentFollow, children }: Settings): readonly string[] {
  const hasParent = parentUrls.length > 0;
  const hasRules = parentForward.length > 0 || parentFollow.length > 0;
  const warnings: string[] = [];
  if (hasParent && !hasRules)
    warnings.push('parent.urls is given without parent.forward or parent.follow: nothing crosses the link to the parent');
  if (!hasParent && hasRules) warnings.push('parent.forward or parent.follow is given without parent.urls: this cache has no parent');
  for (const [name, { accept }] of children)
    if (accept.length > 0 && shardsNamedBy(accept).length === 0)
      warnings.push(
        `children.${name}.accept names no shard: nothing is accepted, because a child may claim only shards that are named, or shards: ['*']`,
      );
  return warnings;
}
