import { test } from '../../support/test.js';
import { agentOptions, certOptions, operatorOptions, statusOptions } from '../../../src/config/options/command-options.js';
import { readCommandValues, type CommandOptions } from '../../../src/config/command-line/command-values.js';
import { environmentName, type CommandOption } from '../../../src/config/options/option.js';
import { options as serverOptions } from '../../../src/config/options/options.js';
import { SettingsError } from '../../../src/config/settings-error.js';

const files = { 'cert-file': 'a.crt', 'key-file': 'a.key' };
const operator = { cache: 'https://localhost:6443', ...files };
const agent = { ...operator, kubeconfig: 'k', 'shard-name': 'amber' };
const tables: readonly CommandOptions[] = [agentOptions, certOptions, operatorOptions, statusOptions];

function problemsOf(options: CommandOptions, flags: Record<string, string>, environment: Record<string, string> = {}): readonly string[] {
  const error = thrownBy(() => readCommandValues(options, { flags, environment }));
  return error instanceof SettingsError ? error.problems : [];
}

function thrownBy(task: () => unknown): unknown {
  try {
    task();
    return undefined;
  } catch (error) {
    return error;
  }
}

test('a flag wins over a variable, a variable over the default', (t) => {
  const environment = { STRATA_VALIDITY: '2h', STRATA_FORCE: 'true', STRATA_CA_DIRECTORY: '' };

  t.deepEqual(readCommandValues(certOptions, { flags: {}, environment: {} }), {
    caDirectory: 'strata-ca',
    outDirectory: '.',
    validityMs: 365 * 86_400_000,
    force: false,
  });
  t.like(readCommandValues(certOptions, { flags: {}, environment }), { caDirectory: 'strata-ca', validityMs: 7_200_000, force: true });
  t.is(readCommandValues(certOptions, { flags: { validity: '3h' }, environment }).validityMs, 10_800_000);
});

test('missing required values are reported by their flags, all of them at once', (t) => {
  t.deepEqual(
    problemsOf(agentOptions, {}).map((problem) => problem.replace(/:.*/, '')),
    ['--kubeconfig', '--shard-name', '--cache', '--cert-file', '--key-file'].map((flag) => `${flag} must be given`),
  );
  t.deepEqual(problemsOf(agentOptions, agent), []);
});

test('the error for a missing file says what the file is', (t) => {
  t.deepEqual(problemsOf(agentOptions, {}), [
    '--kubeconfig must be given: the kubeconfig of the shard to read',
    '--shard-name must be given: the name of a shard',
    '--cache must be given: one or several URLs of caches without a path, such as https://localhost:6443',
    '--cert-file must be given: the client certificate (PEM) to show',
    '--key-file must be given: the key (PEM) of the client certificate',
  ]);
});

test('a cache must be reached over https, at a URL without a path', (t) => {
  const urls = (cache: string) => readCommandValues(operatorOptions, { flags: { ...operator, cache }, environment: {} }).cache;

  t.is(urls('https://localhost:6443'), 'https://localhost:6443');
  t.is(urls('https://Cache.Example:443/'), 'https://cache.example');
  t.is(urls('https://[::1]:6443'), 'https://[::1]:6443');
  for (const cache of [
    'http://a',
    'a:6443',
    'https://',
    'https://a/b',
    'https://a/?x',
    'https://a/#x',
    'https://me:pw@a',
    'wss://a',
    'https://a,https://b',
  ])
    t.deepEqual(problemsOf(operatorOptions, { ...operator, cache }), [
      `--cache=${cache}: must be the URL of a cache without a path, such as https://localhost:6443`,
    ]);
});

test('an agent may be given several caches, each once', (t) => {
  const caches = (cache: string): readonly string[] =>
    readCommandValues(agentOptions, { flags: { ...agent, cache }, environment: {} }).caches;

  t.deepEqual(caches('https://a:1,https://b:2,https://a:1/'), ['https://a:1', 'https://b:2']);
  for (const cache of ['', 'https://a,', 'https://a,b']) t.is(problemsOf(agentOptions, { ...agent, cache }).length, 1, cache);
});

test('--shard-name takes only the name of a shard, and --system-clusters only names of system clusters', (t) => {
  t.deepEqual(problemsOf(agentOptions, { ...agent, 'shard-name': 'Amber' }), ['--shard-name=Amber: must be the name of a shard']);
  t.is(problemsOf(agentOptions, { ...agent, 'system-clusters': 'root' }).length, 1);
  t.is(readCommandValues(agentOptions, { flags: agent, environment: {} }).context, '');
});

test('the same flag means the same everywhere it is accepted', (t) => {
  const seen = new Map<string, CommandOption<unknown>>(
    Object.values<CommandOption<unknown>>(serverOptions).map((option) => [option.flag, option]),
  );
  for (const option of tables.flatMap((table) => Object.values(table))) {
    const { flag, help } = option;
    t.regex(flag, /^[a-z0-9]+(-[a-z0-9]+)*$/);
    t.regex(help, /\.$/, flag);
    const before = seen.get(flag);
    // Some commands cannot do without what others can, so what an empty one is read as may differ.
    if (before !== undefined && flag !== 'cache')
      t.deepEqual({ ...option, read: 0 }, { ...before, read: 0 }, `${flag}, ${environmentName(option)}`);
    seen.set(flag, option);
  }
});

test('a variable of no command is refused; one of another command or of a service is not', (t) => {
  const environment = {
    STRATA_LOG_LEVEL: 'debug',
    STRATA_KUBECONFIG: 'x',
    STRATA_SERVICE_HOST: '10.0.0.1',
    STRATA_PORT: 'tcp://10.0.0.1:1',
  };

  t.notThrows(() => readCommandValues(certOptions, { flags: {}, environment }));
  t.throws(() => readCommandValues(certOptions, { flags: {}, environment: { ...environment, STRATA_FORSE: 'true' } }), {
    instanceOf: SettingsError,
    message: 'unknown environment variable STRATA_FORSE; did you mean STRATA_FORCE?',
  });
});

test('an agent’s metrics address is read as controller-runtime reads it, and any other text is refused', (t) => {
  const addressOf = (text: string) => {
    const flags = { ...agent, 'metrics-bind-address': text };
    return readCommandValues(agentOptions, { flags, environment: {} }).metricsBindAddress;
  };

  t.is(readCommandValues(agentOptions, { flags: agent, environment: {} }).metricsBindAddress, undefined);
  t.is(addressOf('0'), undefined);
  t.deepEqual(addressOf(':8080'), { host: '', port: 8080 });
  t.deepEqual(addressOf('127.0.0.1:8080'), { host: '127.0.0.1', port: 8080 });
  t.deepEqual(addressOf('[::1]:0'), { host: '::1', port: 0 });
  t.deepEqual(addressOf('localhost:65535'), { host: 'localhost', port: 65_535 });
  t.deepEqual(addressOf('a-b.c1.svc:1'), { host: 'a-b.c1.svc', port: 1 });
  const wrong = [
    '',
    ' ',
    '8080',
    ':',
    ':http',
    ':65536',
    ':-1',
    ':080800',
    '::1:8080',
    '[::1]',
    '[]:1',
    '[127.0.0.1]:1',
    '1.2.3:1',
    '256.0.0.1:1',
  ];
  for (const text of [...wrong, 'http://a:1', 'a:1/metrics', 'a b:1', '-a:1', 'a..b:1', 'a.:1', `${'a.'.repeat(127)}a:1`, 'false', '00'])
    t.deepEqual(
      problemsOf(agentOptions, { ...agent, 'metrics-bind-address': text }),
      [`--metrics-bind-address=${text}: must be host:port, such as 127.0.0.1:8080, [::1]:8080 or :8080, or 0 for none`],
      text,
    );
});
