/**
 * All settings, read once at the start. A flag takes precedence over a variable, a variable over
 * the file, and the file over a default. The settings are complete and frozen.
 *
 * An unknown flag, key or variable, or a value out of its bounds, is an error that names its
 * source. All errors are reported at once. Variables that Kubernetes sets for a service named
 * strata are ignored (variables.ts).
 */
import { join } from 'node:path';
import { keptNames, type KeptNames } from '../domain/kept-names.js';
import type { LinkPolicy } from '../domain/link-policy.js';
import type { ChildPolicies, LinkPolicies } from '../domain/link-policies.js';
import { noConfigFile, readConfigFile } from './files/config-file.js';
import { fromCommandLine, setVariable, type Given } from './command-line/command-values.js';
import type { Option, ValueOf } from './options/option.js';
import { configFileOption, options } from './options/options.js';
import { SettingsError } from './settings-error.js';
import { suggestion } from './command-line/nearest.js';
import { unknownVariables, withoutServices } from './command-line/variables.js';

/** One setting for each option, and the link policies, which only the file can set. */
export type Settings = { readonly [Key in keyof typeof options]: ValueOf<(typeof options)[Key]> } & Readonly<{
  parentForward: LinkPolicy;
  parentFollow: LinkPolicy;
  children: ReadonlyMap<string, ChildPolicies>;
}>;

export type SettingsSources = Readonly<{
  /** Keyed by flag, without dashes. */
  flags: Readonly<Record<string, string | undefined>>;
  environment: Readonly<Record<string, string | undefined>>;
  readFile: (path: string) => string;
  /**
   * Keyed by flag: defaults that replace the options' own when the program runs in place of a
   * program of kcp.
   */
  defaults?: Readonly<Record<string, string>>;
  /** The policy for following the parent if the file has none. */
  followed?: LinkPolicy;
}>;

export function loadSettings({ flags, environment: all, readFile, defaults = {}, followed = [] }: SettingsSources): Settings {
  const problems = [...unknownFlags(flags), ...unknownVariables(all)];
  const environment = withoutServices(all);
  const configFile = configFileOf({ flags, environment });
  const file = configFile === undefined ? noConfigFile : readConfigFile(configFile, readFile, problems);
  const settings: Record<string, unknown> = {};

  for (const [key, option] of Object.entries<Option<unknown>>(options)) {
    const given =
      fromCommandLine(option, { flags, environment }) ??
      file.options.get(option.yaml) ??
      fromDefault(option, defaults, settings['rootDirectory']);
    const reading = option.read(given?.value ?? '');
    if (reading.kind === 'read') settings[key] = reading.value;
    else problems.push(`${given?.source ?? key}: ${reading.problem}`);
  }

  if (problems.length > 0) throw new SettingsError(problems);
  const { forward, follow, children } = file.policies;
  const complete = { ...settings, parentForward: forward, parentFollow: follow.length === 0 ? followed : follow, children } as Settings;
  const conflicts = rules.filter(({ holds }) => !holds(complete)).map(({ otherwise }) => otherwise);
  if (conflicts.length > 0) throw new SettingsError(conflicts);
  return Object.freeze(complete);
}

export function configFileOf({ flags, environment }: Pick<SettingsSources, 'flags' | 'environment'>): string | undefined {
  return flags[configFileOption.flag] ?? setVariable(environment, configFileOption);
}

export function keptNamesOf({ keptAnnotations, keptLabels }: Pick<Settings, 'keptAnnotations' | 'keptLabels'>): KeptNames {
  return keptNames({ annotations: keptAnnotations, labels: keptLabels });
}

export function linkPoliciesOf({ parentForward, parentFollow, children }: Settings): LinkPolicies {
  return { forward: parentForward, follow: parentFollow, children };
}

/** Bytes that a frame may have in addition to a body. */
const frameOverheadBytes = 64 * 1024;

const rules: readonly Readonly<{ holds: (settings: Settings) => boolean; otherwise: string }>[] = [
  {
    holds: (s) => (s.tlsCertFile === undefined) === (s.tlsPrivateKeyFile === undefined),
    otherwise: '--tls-cert-file and --tls-private-key-file must be given together',
  },
  {
    holds: (s) => (s.parentCertFile === undefined) === (s.parentKeyFile === undefined),
    otherwise: '--parent-cert-file and --parent-key-file must be given together',
  },
  {
    holds: (s) => s.parentUrls.length === 0 || s.parentCertFile !== undefined,
    otherwise: '--parent-urls needs --parent-cert-file and --parent-key-file: a parent accepts nobody without a certificate',
  },
  {
    holds: (s) => (s.etcdCertFile === undefined) === (s.etcdKeyFile === undefined),
    otherwise: '--etcd-certfile and --etcd-keyfile must be given together',
  },
  {
    holds: (s) => new Set(s.etcdServers.map((url) => new URL(url).protocol)).size <= 1,
    otherwise: '--etcd-servers must all begin with https, or all with http',
  },
  {
    holds: (s) => !s.etcdServers.some((url) => url.startsWith('https:')) || s.etcdCaFile !== undefined,
    otherwise: '--etcd-servers with https need --etcd-cafile',
  },
  { holds: (s) => s.headersTimeoutMs <= s.requestTimeoutMs, otherwise: '--headers-timeout must not be longer than --request-timeout' },
  {
    holds: (s) => s.bodyBytesMax <= s.connectionBufferedBytesMax,
    otherwise: '--body-bytes-max must not be above --connection-buffered-bytes-max, or the largest object could hardly be read',
  },
  {
    holds: (s) => s.connectionBufferedBytesMax <= s.bufferedBytesMax,
    otherwise: '--connection-buffered-bytes-max must not be above --buffered-bytes-max',
  },
  {
    holds: (s) => s.bodyBytesMax <= s.commitBytesMax,
    otherwise: '--body-bytes-max must not be above --commit-bytes-max, or the largest body could never commit',
  },
  {
    holds: (s) => s.frameBytesMax >= s.bodyBytesMax + frameOverheadBytes,
    otherwise: '--frame-bytes-max must be at least 64KiB above --body-bytes-max, or the largest body could not be pushed',
  },
  {
    holds: (s) => s.pushBytesMax >= s.frameBytesMax && s.pushMutationsMax >= s.frameMutationsMax,
    otherwise: '--push-bytes-max and --push-mutations-max must not be below --frame-bytes-max and --frame-mutations-max',
  },
  { holds: (s) => s.commitBytesMax <= s.queueBytesMax, otherwise: '--commit-bytes-max must not be above --queue-bytes-max' },
  {
    holds: (s) => s.commitMutationsMax <= s.queueMutationsMax,
    otherwise: '--commit-mutations-max must not be above --queue-mutations-max',
  },
];

function fromDefault(option: Option<unknown>, defaults: Readonly<Record<string, string>>, rootDirectory: unknown): Given | undefined {
  const text = defaults[option.flag] ?? option.default;
  if (text === undefined) return undefined;
  const value = text.startsWith('<root-directory>') ? join(String(rootDirectory ?? ''), text.slice('<root-directory>'.length)) : text;
  return { value, source: `default of --${option.flag}` };
}

function unknownFlags(flags: SettingsSources['flags']): string[] {
  const known = [configFileOption, ...Object.values(options)].map(({ flag }) => flag);
  const unknown = Object.keys(flags).filter((flag) => flags[flag] !== undefined && !known.includes(flag));
  return unknown.map((flag) => `unknown flag --${flag}${suggestion(flag, known, '--')}`);
}
