/**
 * The command line of kcp's own `cache-server`, so that what starts that binary can start this one.
 *
 * The grammar is pflag's: `--name value`, `--name=value`, a boolean alone or with `=false`, `-v 4`, `-v4`, `-v=4`; `_` counts as `-`; what
 * comes last wins. Every flag upstream has (kcp dac74f59) has one fate here:
 *   - it becomes an option of ours;
 *   - it tunes a machine we do not have: accepted with a warning, one per reason;
 *   - dropping it would weaken what the operator asked for (ciphers, encryption, who may pass), or lose data: refused.
 * Our own options work as well. Anything else is an error.
 */
import type { Option } from './option.js';
import { configFileOption, options } from './options.js';
import { suggestion } from './suggestion.js';

export type UpstreamFlags =
  | Readonly<{ kind: 'read'; flags: Readonly<Record<string, string>>; warnings: readonly string[] }>
  | Readonly<{ kind: 'help' | 'version' }>
  | Readonly<{ kind: 'refused'; problems: readonly string[] }>;

/** Where defaults differ from our own when started in upstream's place. */
export const upstreamDefaults = { 'root-directory': '.kcp-cache' } as const;

type Fate =
  | Readonly<{ kind: 'option'; flag: string; value: string }>
  | Readonly<{ kind: 'accepted' }>
  | Readonly<{ kind: 'warning'; why: string }>
  | Readonly<{ kind: 'refusal'; why: string }>;

/** Decides what becomes of a flag with this value. A `boolean` flag does not use the next argument. */
type UpstreamFlag = Readonly<{ boolean: boolean; decide: (value: string) => readonly Fate[]; meaning: string }>;

const accepted: Fate = { kind: 'accepted' };
const embeddedEtcd = 'there is no embedded etcd here: the store is SQLite, or the etcd of --etcd-servers';
const noEtcd = 'if etcd is asked at all, then as this server needs it';
const noGenericStorage = 'the store here has nothing to tune with it';
const noKlog = 'logs are events here, see --log-level and --log-format';
const healthPaths = ['/healthz', '/readyz', '/livez'];
const debugVerbosityMin = 4;

const upstreamFlags: ReadonlyMap<string, UpstreamFlag> = new Map<string, UpstreamFlag>([
  [configFileOption.flag, becomes(configFileOption.flag, configFileOption.help)],
  ...Object.values<Option<unknown>>(options).map(
    ({ flag, placeholder, help }) => [flag, placeholder === 'boolean' ? toggles(flag, help) : becomes(flag, help)] as const,
  ),

  ['embedded-etcd-directory', becomes('data-directory', options.dataDirectory.help)],
  ...['peer-port', 'client-port', 'listen-metrics-urls', 'wal-size-bytes', 'quota-backend-bytes'].map(
    (name) => [`embedded-etcd-${name}`, warned(embeddedEtcd)] as const,
  ),
  ['embedded-etcd-force-new-cluster', warned(embeddedEtcd, true)],

  [
    'etcd-servers',
    decided(`${options.etcdServers.help} So does embedded.`, (value) =>
      value === 'embedded' ? [accepted] : [option('etcd-servers', value)],
    ),
  ],
  [
    'etcd-prefix',
    decided(`${options.etcdPrefix.help} As with kcp's own, /registry is /cache.`, (value) => [
      option('etcd-prefix', value === '/registry' ? '/cache' : value),
    ]),
  ],
  ['etcd-servers-overrides', refused('all objects are in one etcd; give it as --etcd-servers')],
  ...['compaction-interval', 'count-metric-poll-period', 'db-metric-poll-interval', 'healthcheck-timeout', 'readycheck-timeout'].map(
    (name) => [`etcd-${name}`, warned(noEtcd)] as const,
  ),
  ['encryption-provider-config', refused('objects are not encrypted at rest here; use an encrypted volume and leave it out')],
  ['encryption-provider-config-automatic-reload', warned(noGenericStorage, true)],
  ['storage-backend', warned(noEtcd)],
  [
    'storage-media-type',
    decided('application/json', (value) =>
      value === 'application/json' ? [accepted] : [warning('objects are kept as the JSON they came in')],
    ),
  ],
  ...['delete-collection-workers', 'default-watch-cache-size', 'watch-cache-sizes', 'lease-reuse-duration-seconds'].map(
    (name) => [name, warned(noGenericStorage)] as const,
  ),
  ...['enable-garbage-collector', 'watch-cache'].map((name) => [name, warned(noGenericStorage, true)] as const),

  [
    'disable-http2-serving',
    decided('the opposite of --http2', (value) => whenBoolean(value, (disabled) => [option('http2', String(!disabled))]), true),
  ],
  // Zero is upstream's word for the default.
  [
    'http2-max-streams-per-connection',
    decided(options.http2StreamsMax.help, (value) => (value === '0' ? [accepted] : [option('http2-max-streams-per-connection', value)])),
  ],
  ['tls-min-version', decided(options.tlsVersionMin.help, decideTlsVersion)],
  [
    'tls-cipher-suites',
    refused('the ciphers of OpenSSL are offered here; to leave it out would offer more than was asked for, see --tls-min-version=TLSv1.3'),
  ],
  ['tls-curve-preferences', refused('the curves of OpenSSL are offered here, and leaving it out would offer more than was asked for')],
  ['tls-sni-cert-key', refused('one certificate is shown to everybody; put all names into --tls-cert-file')],
  [
    'permit-port-sharing',
    decided(
      'false',
      (value) =>
        whenBoolean(value, (shared) =>
          shared ? [warning('two processes cannot share one store, so the port is not shared')] : [accepted],
        ),
      true,
    ),
  ],
  ['permit-address-sharing', decided('anything', (value) => whenBoolean(value, () => [accepted]), true)],
  ['authorization-always-allow-paths', decided('the health endpoints', decideOpenPaths)],

  [
    'v',
    decided('4 and above: debug', (value) =>
      /^\d+$/.test(value)
        ? [option('log-level', Number(value) >= debugVerbosityMin ? 'debug' : 'info')]
        : [refusal('must be a whole number')],
    ),
  ],
  ['logging-format', decided('json or text', decideLoggingFormat)],
  ...['vmodule', 'log-flush-frequency', 'log-json-info-buffer-size', 'log-text-info-buffer-size'].map(
    (name) => [name, warned(noKlog)] as const,
  ),
  ...['log-json-split-stream', 'log-text-split-stream'].map((name) => [name, warned(noKlog, true)] as const),
  ['feature-gates', warned('there are no feature gates here')],
]);

export function readUpstreamFlags(args: readonly string[]): UpstreamFlags {
  const flags: Record<string, string> = {};
  const namesByWarning = new Map<string, Set<string>>();
  const problems: string[] = [];
  const warn = (why: string, name: string): void => void namesByWarning.set(why, (namesByWarning.get(why) ?? new Set()).add(name));

  for (const given of split(args)) {
    if (given.kind === 'asked') return { kind: given.what };
    if (given.kind === 'stray') warn('arguments are ignored', JSON.stringify(given.text));
    else if (given.kind === 'problem') problems.push(given.text);
    else
      for (const fate of given.flag.decide(given.value)) {
        if (fate.kind === 'option') flags[fate.flag] = fate.value;
        if (fate.kind === 'warning') warn(fate.why, `--${given.name}`);
        if (fate.kind === 'refusal') problems.push(`--${given.name}=${given.value}: ${fate.why}`);
      }
  }

  if (problems.length > 0) return { kind: 'refused', problems };
  return { kind: 'read', flags, warnings: [...namesByWarning].map(([why, names]) => `${[...names].join(', ')}: ${why}`) };
}

/** One line per flag: its name, and its fate. */
export function describeUpstreamFlags(): readonly Readonly<{ flag: string; meaning: string }>[] {
  return [...upstreamFlags].map(([flag, { meaning }]) => ({ flag, meaning })).toSorted((a, b) => a.flag.localeCompare(b.flag));
}

type Given =
  | Readonly<{ kind: 'flag'; name: string; flag: UpstreamFlag; value: string }>
  | Readonly<{ kind: 'stray'; text: string }>
  | Readonly<{ kind: 'problem'; text: string }>
  | Readonly<{ kind: 'asked'; what: 'help' | 'version' }>;

/** pflag's grammar. */
function* split(args: readonly string[]): Generator<Given> {
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]!;
    if (arg === '--') {
      yield* args.slice(at + 1).map((text): Given => ({ kind: 'stray', text }));
      return;
    }
    if (arg === '-h' || arg === '--help') yield { kind: 'asked', what: 'help' };
    else if (arg === '--version') yield { kind: 'asked', what: 'version' };
    else if (arg === '-' || !arg.startsWith('-')) yield { kind: 'stray', text: arg };
    else {
      const { name, attached } = parseArgument(arg);
      const flag = upstreamFlags.get(name);
      const next = args[at + 1];
      if (flag === undefined) yield { kind: 'problem', text: unknownFlag(arg, name) };
      else if (attached !== undefined) yield { kind: 'flag', name, flag, value: attached };
      else if (flag.boolean) yield { kind: 'flag', name, flag, value: 'true' };
      else if (next === undefined) yield { kind: 'problem', text: `--${name} needs a value` };
      else {
        yield { kind: 'flag', name, flag, value: next };
        at++;
      }
    }
  }
}

/** `--name`, `--name=value`, or the short `-v` whose value may stick to it. */
function parseArgument(arg: string): { name: string; attached: string | undefined } {
  if (!arg.startsWith('--')) {
    const rest = arg.slice(2).replace(/^=/, '');
    return { name: arg[1]!, attached: arg.length === 2 ? undefined : rest };
  }
  const equals = arg.indexOf('=');
  const name = (equals === -1 ? arg.slice(2) : arg.slice(2, equals)).replaceAll('_', '-');
  return { name, attached: equals === -1 ? undefined : arg.slice(equals + 1) };
}

function unknownFlag(arg: string, name: string): string {
  return arg.startsWith('--') ? `unknown flag --${name}${suggestion(name, upstreamFlags.keys(), '--')}` : `unknown flag ${arg.slice(0, 2)}`;
}

function decideTlsVersion(value: string): readonly Fate[] {
  switch (value) {
    case 'VersionTLS13':
      return [option('tls-min-version', 'TLSv1.3')];
    case 'VersionTLS12':
      return [option('tls-min-version', 'TLSv1.2')];
    case 'VersionTLS10':
    case 'VersionTLS11':
      return [option('tls-min-version', 'TLSv1.2'), warning('nothing older than TLS 1.2 is spoken')];
    default:
      return [option('tls-min-version', value)];
  }
}

function decideLoggingFormat(value: string): readonly Fate[] {
  if (value === 'json') return [option('log-format', 'json')];
  if (value === 'text') return [option('log-format', 'pretty')];
  return [refusal('must be json or text')];
}

/** The health endpoints are open and nothing else ever is: a longer list loses something, a shorter one cannot be honoured. */
function decideOpenPaths(value: string): readonly Fate[] {
  const paths = value.split(',').filter((path) => path !== '');
  const closed = healthPaths.filter((path) => !paths.includes(path));
  if (closed.length > 0) return [refusal(`${closed.join(', ')} always answer everybody and cannot be closed`)];
  return paths.length > healthPaths.length ? [warning('only the health endpoints answer everybody')] : [accepted];
}

/** Go's strconv.ParseBool. */
function whenBoolean(value: string, decide: (value: boolean) => readonly Fate[]): readonly Fate[] {
  if (['1', 't', 'T', 'true', 'TRUE', 'True'].includes(value)) return decide(true);
  if (['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(value)) return decide(false);
  return [refusal('must be true or false')];
}

function becomes(flag: string, meaning: string): UpstreamFlag {
  return decided(meaning, (value) => [option(flag, value)]);
}

function toggles(flag: string, meaning: string): UpstreamFlag {
  return decided(meaning, (value) => whenBoolean(value, (on) => [option(flag, String(on))]), true);
}

function warned(why: string, boolean = false): UpstreamFlag {
  return decided(`accepted: ${why}`, () => [warning(why)], boolean);
}

function refused(why: string): UpstreamFlag {
  return decided(`refused: ${why}`, () => [refusal(why)]);
}

function decided(meaning: string, decide: UpstreamFlag['decide'], boolean = false): UpstreamFlag {
  return { boolean, decide, meaning };
}

function option(flag: string, value: string): Fate {
  return { kind: 'option', flag, value };
}

function warning(why: string): Fate {
  return { kind: 'warning', why };
}

function refusal(why: string): Fate {
  return { kind: 'refusal', why };
}
