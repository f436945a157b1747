import { test } from '../../support/test.js';
import { environmentName, type Option } from '../../../src/config/options/option.js';
import { options } from '../../../src/config/options/options.js';
import { loadSettings, type Settings } from '../../../src/config/settings.js';
import { SettingsError } from '../../../src/config/settings-error.js';

type Given = { flags?: Record<string, string>; environment?: Record<string, string>; file?: string; defaults?: Record<string, string> };

function load({ flags = {}, environment = {}, file, defaults = {} }: Given = {}): Settings {
  return loadSettings({
    flags: file === undefined ? flags : { config: 'strata.yaml', ...flags },
    environment,
    defaults,
    readFile: (path) => {
      if (file === undefined || path !== 'strata.yaml') throw new Error(`ENOENT: no such file, open '${path}'`);
      return file;
    },
  });
}

function problemsOf(given: Given): readonly string[] {
  try {
    load(given);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}

const all: readonly (readonly [string, Option<unknown>])[] = Object.entries(options);

test('without any source the settings are the defaults of the design, complete and frozen', (t) => {
  const settings = load();

  t.is(settings.queueMutationsMax, 10_000);
  t.is(settings.queueBytesMax, 64 * 2 ** 20);
  t.is(settings.commitMutationsMax, 512);
  t.is(settings.commitBytesMax, 8 * 2 ** 20);
  t.is(settings.watcherQueueBytesMax, 4 * 2 ** 20);
  t.is(settings.listChunkBytesMax, 256 * 2 ** 10);
  t.is(settings.bookmarkIntervalMs, 60_000);
  t.is(settings.bodyBytesMax, 3_145_728);
  t.is(settings.historyAgeMaxMs, 86_400_000);
  t.is(settings.historyChangesMax, 1_000_000);
  t.is(settings.historyBytesMax, 4 * 2 ** 30);
  t.is(settings.tombstoneAgeMaxMs, 30 * 86_400_000);
  t.is(settings.tombstonesMax, 1_000_000);
  t.is(settings.clientCaFile, undefined);
  t.deepEqual(Object.keys(settings), [...Object.keys(options), 'parentForward', 'parentFollow', 'children']);
  t.true(Object.isFrozen(settings));
});

test('a flag wins over a variable, a variable over the file, the file over the default', (t) => {
  const file = 'listen:\n  securePort: 3\n';
  const environment = { STRATA_SECURE_PORT: '2' };

  t.is(load({ file, environment, flags: { 'secure-port': '1' } }).securePort, 1);
  t.is(load({ file, environment }).securePort, 2);
  t.is(load({ file }).securePort, 3);
  t.is(load({ defaults: { 'secure-port': '4' } }).securePort, 4);
  t.is(load().securePort, 6443);
});

test('the file can be named by a variable', (t) => {
  const settings = loadSettings({ flags: {}, environment: { STRATA_CONFIG: 'x' }, readFile: () => 'log: {level: debug}' });

  t.is(settings.logLevel, 'debug');
});

test('paths inside the root directory follow it', (t) => {
  const settings = load({ flags: { 'root-directory': '/var/amber' } });

  t.is(settings.dataDirectory, '/var/amber/data');
  t.is(settings.certificateDirectory, '/var/amber');
  t.is(load({ flags: { 'root-directory': '', 'data-directory': '/x' } }).certificateDirectory, '.');
  t.is(load({ flags: { 'root-directory': '', 'data-directory': '/x' } }).dataDirectory, '/x');
});

test('an empty variable and an empty section count as unset', (t) => {
  t.is(load({ environment: { STRATA_SECURE_PORT: '' } }).securePort, 6443);
  t.is(load({ file: 'listen:\n' }).securePort, 6443);
  t.is(load({ file: '' }).securePort, 6443);
});

test('a value out of its bounds names its source, with the line for the file', (t) => {
  t.deepEqual(problemsOf({ flags: { 'secure-port': '65536' } }), ['--secure-port=65536: must be a whole number from 0 to 65535']);
  t.deepEqual(problemsOf({ environment: { STRATA_QUEUE_BYTES_MAX: '1KiB' } }), [
    'environment variable STRATA_QUEUE_BYTES_MAX=1KiB: must be an amount of bytes from 1MiB to 16GiB, such as 64MiB',
  ]);
  t.deepEqual(problemsOf({ file: '# ports\nlisten:\n\n  securePort: many\n' }), [
    'strata.yaml line 4: listen.securePort: must be a whole number from 0 to 65535',
  ]);
  t.deepEqual(problemsOf({ file: 'listen:\n  securePort: [1]\n' }), ['strata.yaml line 2: listen.securePort: must be a single value']);
});

test('an unknown key names its line and the nearest known one', (t) => {
  t.deepEqual(problemsOf({ file: 'log: {level: info}\nlisten:\n  securPort: 1\n' }), [
    'strata.yaml line 3: unknown key listen.securPort; did you mean listen.securePort?',
  ]);
  t.deepEqual(problemsOf({ file: 'lisen:\n  securePort: 1\n' }), ['strata.yaml line 1: unknown key lisen; did you mean listen?']);
  t.deepEqual(problemsOf({ file: '__proto__: {a: 1}\n' }), ['strata.yaml line 1: unknown key __proto__']);
  t.deepEqual(problemsOf({ flags: { 'bind-adress': '::' } }), ['unknown flag --bind-adress; did you mean --bind-address?']);
});

test('a file that is not YAML, has a key twice, or is no mapping gives an error with the line', (t) => {
  t.regex(problemsOf({ file: 'log:\n  level: "info\n' })[0]!, /^strata\.yaml line \d: /);
  t.regex(problemsOf({ file: 'log:\n  level: info\n  level: debug\n' })[0]!, /^strata\.yaml line 3: .*unique/);
  t.deepEqual(problemsOf({ file: '- a\n' }), ['strata.yaml: the file must be a mapping of keys to values']);
  t.deepEqual(problemsOf({ file: 'log: info\n' }), ['strata.yaml line 1: log must be a mapping of keys to values']);
  t.regex(problemsOf({ flags: { config: 'absent.yaml' } })[0]!, /^absent\.yaml: ENOENT/);
});

test('all problems are reported at once', (t) => {
  t.is(problemsOf({ flags: { 'secure-port': 'x', 'log-level': 'loud' }, environment: { STRATA_HTTP2: 'maybe' } }).length, 3);
});

test('settings that contradict each other are refused', (t) => {
  t.regex(problemsOf({ flags: { 'tls-cert-file': 'a' } })[0]!, /must be given together/);
  t.regex(problemsOf({ flags: { 'headers-timeout': '2m' } })[0]!, /--headers-timeout/);
  t.regex(problemsOf({ flags: { 'body-bytes-max': '16MiB' } })[0]!, /--body-bytes-max/);
  t.regex(problemsOf({ flags: { 'commit-bytes-max': '128MiB' } })[0]!, /--commit-bytes-max/);
  t.regex(problemsOf({ flags: { 'commit-mutations-max': '20000' } })[0]!, /--commit-mutations-max/);
});

test('a parent has several URLs, from a flag, a variable or a list in the file, and none by default', (t) => {
  const pair = { 'parent-cert-file': 'a', 'parent-key-file': 'b' };

  t.deepEqual(load().parentUrls, []);
  t.deepEqual(load({ flags: { ...pair, 'parent-urls': 'https://a:1,https://b,https://a:1/' } }).parentUrls, ['https://a:1', 'https://b']);
  t.deepEqual(load({ flags: pair, environment: { STRATA_PARENT_URLS: 'https://a:1' } }).parentUrls, ['https://a:1']);
  t.deepEqual(load({ flags: pair, file: 'parent: {urls: ["https://a:1", "https://b"]}' }).parentUrls, ['https://a:1', 'https://b']);
  t.deepEqual(load({ flags: pair, file: 'parent: {urls: https://b}' }).parentUrls, ['https://b']);
  t.deepEqual(load({ flags: { 'parent-urls': '' }, file: 'parent: {urls: https://b}' }).parentUrls, []);
  for (const urls of ['[1]', '{a: b}', 'http://a', '[https://a/x]']) {
    const [problem] = problemsOf({ flags: pair, file: `parent:\n  urls: ${urls}\n` });
    t.regex(problem!, /^strata\.yaml line 2: parent\.urls: must be URLs of one cache/, urls);
  }
});

test('a cache connects to its parent with a certificate, and needs a valid name', (t) => {
  t.regex(problemsOf({ flags: { 'parent-urls': 'https://a' } })[0]!, /--parent-urls needs --parent-cert-file/);
  t.regex(problemsOf({ flags: { 'parent-urls': 'https://a', 'parent-cert-file': 'a' } })[0]!, /must be given together/);
  t.is(load().cacheName, undefined);
  t.is(load({ flags: { 'cache-name': 'eu-1' } }).cacheName, 'eu-1');
  t.deepEqual(problemsOf({ flags: { 'cache-name': 'EU' } }), [
    '--cache-name=EU: must be the name of a cache: lower case letters, digits and dashes, at most 63',
  ]);
});

test('a store in etcd needs all of its options: a key with its certificate, one scheme, and CAs for https', (t) => {
  const servers = { 'etcd-servers': 'https://a:2379,https://b:2379' };
  t.is(load({ flags: { 'etcd-servers': 'http://a:2379' } }).etcdPrefix, '/cache');
  t.regex(problemsOf({ flags: servers })[0]!, /need --etcd-cafile/);
  t.regex(problemsOf({ flags: { ...servers, 'etcd-cafile': 'ca', 'etcd-certfile': 'c' } })[0]!, /must be given together/);
  t.regex(problemsOf({ flags: { 'etcd-servers': 'http://a:2379,https://b:2379', 'etcd-cafile': 'ca' } })[0]!, /all begin with https/);
  for (const wrong of ['a:2379', 'http://a:2379/path', 'ftp://a']) t.is(problemsOf({ flags: { 'etcd-servers': wrong } }).length, 1, wrong);
  t.is(problemsOf({ flags: { 'etcd-prefix': 'cache' } }).length, 1);
});

test('an unknown variable is refused with a suggestion of the nearest option', (t) => {
  t.deepEqual(problemsOf({ environment: { STRATA_SECUREPORT: '1', STRATA_NOTHING_AT_ALL_LIKE_IT: 'x', STRATA: 'x', STRATA_EMPTY: '' } }), [
    'unknown environment variable STRATA_SECUREPORT; did you mean STRATA_SECURE_PORT?',
    'unknown environment variable STRATA_NOTHING_AT_ALL_LIKE_IT',
  ]);
  t.deepEqual(problemsOf({ environment: { STRATA_CACHE_CA_FILE: 'ca.crt', STRATA_SHARD_NAME: 'amber', STRATA_CONFIG: '' } }), []);
});

test('a failpoint is armed by its name alone; other text is refused with a list of all failpoints', (t) => {
  t.deepEqual(problemsOf({ environment: { STRATA_FAILPOINT: 'commit.before:3' } }), []);
  t.deepEqual(problemsOf({ environment: { STRATA_FAILPOINT: '' } }), []);
  const [problem, ...more] = problemsOf({ environment: { STRATA_FAILPOINT: 'commit.befor' } });
  t.deepEqual(more, []);
  t.regex(
    problem!,
    /^environment variable STRATA_FAILPOINT=commit\.befor: must be one of commit\.before, commit\.after, .*or one followed by :N/,
  );
});

test('variables that Kubernetes sets for services named strata give no error and set no option', (t) => {
  const linksOf = (service: string): Record<string, string> => ({
    [`${service}_SERVICE_HOST`]: '10.0.0.1',
    [`${service}_SERVICE_PORT`]: '6443',
    [`${service}_SERVICE_PORT_HTTPS`]: '6443',
    [`${service}_SERVICE_PORT_PUSH_2`]: '6444',
    [`${service}_PORT`]: 'tcp://10.0.0.1:6443',
    ...Object.fromEntries(['', '_PROTO', '_PORT', '_ADDR'].map((end) => [`${service}_PORT_6443_TCP${end}`, 'x'])),
    [`${service}_PORT_53_UDP`]: 'udp://10.0.0.1:53',
    [`${service}_PORT_9_SCTP_ADDR`]: '10.0.0.1',
  });
  const services = ['STRATA', 'STRATA_EU_1', 'STRATA_SECURE', 'STRATA_SERVICE'];
  for (const service of services) t.is(load({ environment: linksOf(service) }).securePort, 6443, service);
  t.is(load({ environment: Object.assign({}, ...services.map(linksOf)) as Record<string, string> }).securePort, 6443);

  t.is(load({ environment: { ...linksOf('STRATA_SECURE'), STRATA_SECURE_PORT: '7' } }).securePort, 7);
  t.deepEqual(problemsOf({ environment: { STRATA_SECUR_PORT: '1' } }), [
    'unknown environment variable STRATA_SECUR_PORT; did you mean STRATA_SECURE_PORT?',
  ]);
  t.deepEqual(problemsOf({ environment: { ...linksOf('STRATA'), STRATA_PORTS: '1', STRATA_PORT_X_TCP: '1' } }).length, 2);
  t.regex(problemsOf({ environment: { STRATA_SECURE_PORT: 'tcp://10.0.0.1:6443' } })[0]!, /must be a whole number/);
});

test('every option has its own flag, variable and key, and a sentence of help', (t) => {
  for (const names of [all.map(([, { flag }]) => flag), all.map(([, option]) => environmentName(option)), all.map(([, { yaml }]) => yaml)])
    t.is(new Set(names).size, names.length);
  for (const [key, { flag, yaml, help }] of all) {
    t.regex(flag, /^[a-z0-9]+(-[a-z0-9]+)*$/, key);
    t.regex(yaml, /^[a-z0-9]+\.[a-zA-Z0-9]+$/, key);
    t.regex(help, /\.$/, key);
  }
});

test('the name of every option with an amount ends in its unit', (t) => {
  for (const [key, { placeholder }] of all) {
    if (placeholder === 'duration') t.regex(key, /Ms$/, key);
    if (placeholder === 'bytes') t.regex(key, /BytesMax$/, key);
  }
});
