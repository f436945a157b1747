import { test } from '../../support/test.js';
import { options } from '../../../src/config/options/options.js';
import { loadSettings } from '../../../src/config/settings.js';
import { cacheServerDefaults, cacheServerFlags } from '../../../src/config/kcp-flags/cache-server-flags.js';
import { proxyOptions } from '../../../src/config/options/command-options.js';
import { frontProxyFlags } from '../../../src/config/kcp-flags/front-proxy-flags.js';
import { describeUpstreamFlags, readUpstreamFlags, type UpstreamFlags } from '../../../src/config/kcp-flags/upstream-flags.js';

function read(...args: string[]): Extract<UpstreamFlags, { kind: 'read' }> {
  const result = readUpstreamFlags(args, cacheServerFlags);
  if (result.kind !== 'read') throw new Error(JSON.stringify(result));
  return result;
}

function problems(...args: string[]): readonly string[] {
  const result = readUpstreamFlags(args, cacheServerFlags);
  return result.kind === 'refused' ? result.problems : [];
}

test("the flags of kcp's sharded-test-server are accepted", (t) => {
  const { flags, warnings } = read(
    '--root-directory=/tmp/.kcp-cache',
    '--bind-address=10.0.0.1',
    '--secure-port=8012',
    '--synthetic-delay=1m30s',
    '--client-ca-file=/tmp/client-ca.crt',
    '--embedded-etcd-client-port=8010',
    '--embedded-etcd-peer-port=8011',
  );

  t.deepEqual(flags, {
    'root-directory': '/tmp/.kcp-cache',
    'bind-address': '10.0.0.1',
    'secure-port': '8012',
    'synthetic-delay': '1m30s',
    'client-ca-file': '/tmp/client-ca.crt',
  });
  t.deepEqual(warnings, [
    '--embedded-etcd-client-port, --embedded-etcd-peer-port: there is no embedded etcd here: the store is SQLite, or the etcd of --etcd-servers',
  ]);
});

test("the flags of kcp-operator are accepted: an empty root directory, and etcd's directory for the data", (t) => {
  const { flags, warnings } = read(
    '--root-directory=',
    '--embedded-etcd-directory=/var/etcd',
    '--tls-cert-file=/tls/tls.crt',
    '--tls-private-key-file=/tls/tls.key',
    '-v=4',
  );
  const settings = loadSettings({ flags, environment: {}, defaults: cacheServerDefaults, readFile: () => '' });

  t.deepEqual(warnings, []);
  t.is(settings.dataDirectory, '/var/etcd');
  t.is(settings.rootDirectory, '.');
  t.is(settings.tlsCertFile, '/tls/tls.crt');
  t.is(settings.logLevel, 'debug');
});

test("with upstream's flags the root directory is upstream's, unless a flag names another", (t) => {
  const load = (flags: Record<string, string>, environment: Record<string, string> = {}): string =>
    loadSettings({ flags, environment, defaults: cacheServerDefaults, readFile: () => '' }).dataDirectory;

  t.is(load({}), '.kcp-cache/data');
  t.is(load({}, { STRATA_ROOT_DIRECTORY: '/b' }), '/b/data');
  t.is(load({ 'root-directory': '/a' }, { STRATA_ROOT_DIRECTORY: '/b' }), '/a/data');
});

test("every form of pflag's grammar works", (t) => {
  t.is(read('--secure-port', '1').flags['secure-port'], '1');
  t.is(read('--secure-port=1', '--secure-port=2').flags['secure-port'], '2');
  t.is(read('--secure_port=3').flags['secure-port'], '3');
  for (const form of [['-v', '4'], ['-v4'], ['-v=4'], ['--v', '4'], ['--v=4']])
    t.is(read(...form).flags['log-level'], 'debug', form.join(' '));
  t.is(read('-v=2').flags['log-level'], 'info');
  t.is(read('--disable-http2-serving').flags['http2'], 'false');
  t.is(read('--disable-http2-serving=false').flags['http2'], 'true');
  t.is(read('--http2=F').flags['http2'], 'false');
  t.deepEqual(read('--disable-http2-serving', '--secure-port=1').flags, { http2: 'false', 'secure-port': '1' });
  t.deepEqual(read('--secure-port=1', '--', '--secure-port=2'), {
    kind: 'read',
    flags: { 'secure-port': '1' },
    warnings: ['"--secure-port=2": arguments are ignored'],
  });
  t.is(readUpstreamFlags(['--secure-port=1', '-h'], cacheServerFlags).kind, 'help');
});

test('--version asks for the version, wherever the flag stands', (t) => {
  t.is(readUpstreamFlags(['--version'], cacheServerFlags).kind, 'version');
  t.is(readUpstreamFlags(['--secure-port=1', '--version'], cacheServerFlags).kind, 'version');
});

test('an unknown flag names the nearest known one', (t) => {
  t.deepEqual(problems('--secure-prt=1'), ['unknown flag --secure-prt; did you mean --secure-port?']);
  t.deepEqual(problems('--embedded-etcd-dir=/x'), ['unknown flag --embedded-etcd-dir; did you mean --embedded-etcd-directory?']);
  t.deepEqual(problems('-x'), ['unknown flag -x']);
  t.deepEqual(problems('--secure-port'), ['--secure-port needs a value']);
  t.deepEqual(problems('--constructor=1'), ['unknown flag --constructor']);
});

const refusedArguments = [
  '--etcd-servers-overrides=/x#http://etcd:2379',
  '--encryption-provider-config=/x',
  '--tls-curve-preferences=23',
  '--tls-sni-cert-key=a,b',
  '--authorization-always-allow-paths=/healthz',
  '--logging-format=xml',
  '--v=loud',
  '--permit-port-sharing=maybe',
];

for (const argument of refusedArguments) {
  test(`a flag that cannot be honoured is refused, not dropped: ${argument}`, (t) => t.is(problems(argument).length, 1));
}

test('an external etcd becomes the store, and the embedded one the data directory', (t) => {
  const args = [
    '--etcd-servers=https://a:2379,https://b:2379',
    '--etcd-prefix=/x',
    '--etcd-cafile=ca',
    '--etcd-certfile=c',
    '--etcd-keyfile=k',
  ];
  const { flags, warnings } = read(...args);
  t.deepEqual(flags, {
    'etcd-servers': 'https://a:2379,https://b:2379',
    'etcd-prefix': '/x',
    'etcd-cafile': 'ca',
    'etcd-certfile': 'c',
    'etcd-keyfile': 'k',
  });
  t.deepEqual(warnings, []);
  t.like(read('--etcd-prefix=/registry'), { flags: { 'etcd-prefix': '/cache' } }, 'as upstream has it');
  t.deepEqual(read('--etcd-servers=embedded'), { kind: 'read', flags: {}, warnings: [] });
});

test('the parts of a list in several flags are joined before the list is checked', (t) => {
  const paths = '--authorization-always-allow-paths';
  t.is(read('--etcd-servers=https://a:2379', '--etcd-servers=https://b:2379').flags['etcd-servers'], 'https://a:2379\nhttps://b:2379');
  t.is(read(`${paths}=/metrics`, `${paths}=/healthz,/livez`, paths, '/readyz').flags[paths.slice(2)], '/healthz,/readyz,/livez,/metrics');
  t.deepEqual(problems(`${paths}=/metrics`, `${paths}=/healthz,/livez`), [
    `${paths}=/metrics,/healthz,/livez: /readyz always answer everybody and cannot be closed: name them as well`,
  ]);
  t.like(readProxy('--requestheader-group-headers=X-Remote-Group', '--requestheader-group-headers=x-remote-group'), { kind: 'read' });
  t.like(readProxy('--requestheader-group-headers=X-Remote-Group', '--requestheader-group-headers=x-groups'), { kind: 'refused' });
});

test('flags that tune absent features are accepted with one warning per reason', (t) => {
  t.is(read('--etcd-compaction-interval=5m', '--storage-backend=etcd3').warnings.length, 1);
  t.is(read('--feature-gates=A=true', '--vmodule=a=1', '--log-json-split-stream', '--watch-cache=false').warnings.length, 3);
  t.deepEqual(
    read('--storage-media-type=application/json', '--permit-address-sharing', '--authorization-always-allow-paths=/healthz,/readyz,/livez')
      .warnings,
    [],
  );
});

test('cipher suites have Go’s names, may be given in several flags, and are refused at the start if they cannot be offered', (t) => {
  const settingOf = (...args: string[]) =>
    loadSettings({ flags: read(...args).flags, environment: {}, readFile: () => '' }).tlsCipherSuites;
  const flag = '--tls-cipher-suites';

  t.is(settingOf(), undefined);
  t.is(settingOf(`${flag}=`), undefined);
  t.is(
    settingOf(`${flag}=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256`, flag, '"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"'),
    'ECDHE-RSA-AES128-GCM-SHA256:TLS_AES_128_GCM_SHA256:ECDHE-ECDSA-CHACHA20-POLY1305',
  );
  t.throws(() => settingOf(`${flag}=TLS_RSA_WITH_RC4_128_SHA,nope`), {
    message: /"TLS_RSA_WITH_RC4_128_SHA" is broken, and not offered here; there is no cipher suite "nope"/,
  });
});

test('every server accepts the profiler’s flag, with a warning that there is no profiler', (t) => {
  for (const table of [cacheServerFlags, frontProxyFlags]) {
    t.like(readUpstreamFlags(['--profiler-address=:6060'], table), {
      kind: 'read',
      warnings: [
        '--profiler-address: there is no profiler of Go here, and nothing listens at that address; see process_… and nodejs_… in /metrics',
      ],
    });
    t.like(readUpstreamFlags(['--profiler-address='], table), { kind: 'read', warnings: [] });
  }
});

test('the paths open to everybody are health and, if the flag says so, metrics', (t) => {
  const flag = 'authorization-always-allow-paths';
  t.deepEqual(read(`--${flag}=/healthz,/readyz,/livez,/metrics`), {
    kind: 'read',
    flags: { [flag]: '/healthz,/readyz,/livez,/metrics' },
    warnings: [],
  });
  t.is(read(`--${flag}="/metrics",/healthz,/readyz,/livez`).flags[flag], '/healthz,/readyz,/livez,/metrics');
  const more = read(`--${flag}=/healthz,/readyz,/livez,/debug/*,*`);
  t.is(more.flags[flag], '/healthz,/readyz,/livez');
  t.is(more.warnings.length, 1);
  t.deepEqual(problems(`--${flag}=/metrics`), [
    `--${flag}=/metrics: /healthz, /readyz, /livez always answer everybody and cannot be closed: name them as well`,
  ]);
  t.is(problems(`--${flag}="/metrics`).length, 1);
  t.deepEqual(loadSettings({ flags: { [flag]: '/metrics' }, environment: {}, readFile: () => '' }).publicPaths, ['/metrics']);
  t.throws(() => loadSettings({ flags: { [flag]: '/metrics,/version' }, environment: {}, readFile: () => '' }));
});

test('a minimum version of TLS is honoured, and never lowers the minimum', (t) => {
  t.is(read('--tls-min-version=VersionTLS13').flags['tls-min-version'], 'TLSv1.3');
  t.is(read('--tls-min-version=VersionTLS10').flags['tls-min-version'], 'TLSv1.2');
  t.throws(() => loadSettings({ flags: read('--tls-min-version=VersionTLS99').flags, environment: {}, readFile: () => '' }));
});

test('every option of Strata is accepted as well, and every flag has a meaning', (t) => {
  const described = describeUpstreamFlags(cacheServerFlags);

  for (const { flag } of Object.values(options))
    t.true(
      described.some((one) => one.flag === flag),
      flag,
    );
  for (const { flag, meaning } of described) t.not(meaning, '', flag);
});

function readProxy(...args: string[]): UpstreamFlags {
  return readUpstreamFlags(args, frontProxyFlags);
}

test("the flags that kcp's sharded-test-server gives its front proxy are accepted", (t) => {
  const read = readProxy(
    '--bind-address=10.0.0.1',
    '--mapping-file=/tmp/.kcp-front-proxy/mapping.yaml',
    '--root-directory=/tmp/.kcp-front-proxy',
    '--root-kubeconfig=/tmp/.kcp/root.kubeconfig',
    '--shards-kubeconfig=/tmp/.kcp-front-proxy/shards.kubeconfig',
    '--client-ca-file=/tmp/.kcp/client-ca.crt',
    '--requestheader-client-ca-file=/tmp/.kcp/requestheader-ca.crt',
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    '--requestheader-allowed-names=kcp-front-proxy,kcp-mounts-proxy',
    '--tls-cert-file=/tmp/a.crt',
    '--tls-private-key-file=/tmp/a.key',
    '--secure-port=6443',
    '--v=4',
  );
  t.deepEqual(read, {
    kind: 'read',
    flags: {
      'bind-address': '10.0.0.1',
      'mapping-file': '/tmp/.kcp-front-proxy/mapping.yaml',
      'root-directory': '/tmp/.kcp-front-proxy',
      'client-ca-file': '/tmp/.kcp/client-ca.crt',
      'requestheader-client-ca-file': '/tmp/.kcp/requestheader-ca.crt',
      'requestheader-allowed-names': 'kcp-front-proxy,kcp-mounts-proxy',
      'tls-cert-file': '/tmp/a.crt',
      'tls-private-key-file': '/tmp/a.key',
      'secure-port': '6443',
      'log-level': 'debug',
    },
    warnings: [
      '--root-kubeconfig, --shards-kubeconfig: the front door learns from the cache above where a request goes, see --parent-urls',
    ],
  });
});

test('a list in several flags is joined, and header names that would let others pass are refused', (t) => {
  t.like(readProxy('--requestheader-allowed-names=a', '--requestheader-allowed-names=b,c', '--authentication-drop-groups', 'x*'), {
    flags: { 'requestheader-allowed-names': 'a\nb,c', 'authentication-drop-groups': 'x*' },
  });
  t.like(readProxy('--requestheader-username-headers=X-Forwarded-User'), { kind: 'refused' });
  t.like(readProxy('--requestheader-group-headers=x-remote-group'), { kind: 'read' });
});

test('the flags for checking tokens are read as kcp’s own front proxy reads them', (t) => {
  const given = [
    '--oidc-issuer-url=https://a',
    '--service-account-lookup=false',
    '--service-account-key-file=k,1',
    '--service-account-key-file=k2',
  ];
  t.like(readProxy(...given, '--token-auth-file=t', '--oidc-required-claim=a=1', '--oidc-required-claim', 'b=2,3'), {
    kind: 'read',
    flags: {
      'oidc-issuer-url': 'https://a',
      'service-account-lookup': 'false',
      'service-account-key-file': 'k,1\nk2',
      'token-auth-file': 't',
      'oidc-required-claim': 'a=1\nb=2,3',
    },
    warnings: [],
  });
  t.like(readProxy('--authentication-token-webhook-cache-ttl=1m'), { flags: { 'authentication-token-webhook-cache-ttl': '1m' } });
});

test("every flag of kcp's front proxy is known here, and so is every option of the front door", (t) => {
  const described = describeUpstreamFlags(frontProxyFlags).map(({ flag }) => flag);
  for (const { flag } of Object.values(proxyOptions)) t.true(described.includes(flag), flag);
  for (const flag of flagsOfFrontProxy) t.true(described.includes(flag), flag);
});

/** The flags of kcp `dac74f595`, as its --help lists them, without those for help. */
const flagsOfFrontProxy = `
  api-audiences authentication-config authentication-drop-groups authentication-pass-on-groups authentication-token-webhook-cache-ttl
  authentication-token-webhook-config-file authentication-token-webhook-version bind-address cert-dir client-ca-file cors-allowed-origins
  disable-http2-serving feature-gates http2-max-streams-per-connection log-flush-frequency log-json-info-buffer-size log-json-split-stream
  log-text-info-buffer-size log-text-split-stream logging-format mapping-file oidc-ca-file oidc-client-id oidc-groups-claim oidc-groups-prefix
  oidc-issuer-url oidc-required-claim oidc-signing-algs oidc-username-claim oidc-username-prefix permit-address-sharing permit-port-sharing
  profiler-address requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix requestheader-group-headers
  requestheader-uid-headers requestheader-username-headers root-directory root-kubeconfig secure-port service-account-extend-token-expiration
  service-account-issuer service-account-jwks-uri service-account-key-file service-account-lookup service-account-max-token-expiration
  shards-kubeconfig tls-cert-file tls-cipher-suites tls-curve-preferences tls-min-version tls-private-key-file tls-sni-cert-key token-auth-file
  v vmodule`
  .trim()
  .split(/\s+/);
