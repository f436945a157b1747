/**
 * The containers of kcp's own manifests: program, arguments in their order, and mounts. They are as
 * for an image whose tag is no version of kcp. Sources: kcp-dev/kcp-operator at 406169b3
 * (internal/resources), kcp-dev/helm-charts at ca73c22c (charts/cache, charts/kcp).
 */

export type Content = 'serving' | 'client' | 'ca' | 'kubeconfig' | 'mapping' | 'tokens' | 'service-account' | 'etcd';

export type Manifest = Readonly<{
  command: readonly string[];
  /** The mounted Secrets and ConfigMaps, by mount path. */
  mounted: Readonly<Record<string, Content>>;
  /** Mount paths of the `emptyDir`s. */
  scratch: readonly string[];
  port: number;
  /** The user of the pod's security context; the image's user if left out. */
  user?: number;
}>;

type Extra = Readonly<{ args: readonly string[] }>;
const none: Extra = { args: [] };

/**
 * A CacheServer of kcp-operator, with the etcd that it would embed or with an external one.
 * `verbosity`: the value of spec.logging.level.
 */
export function operatorCacheServer(
  { etcd, verbosity }: Readonly<{ etcd?: Readonly<{ endpoints: readonly string[]; prefix: string }>; verbosity?: number }> = {},
  extra: Extra = none,
): Manifest {
  const tls = '/etc/cache-server/tls';
  const etcdTls = '/etc/cache-server/etcd';
  return {
    command: [
      '/cache-server',
      `--tls-cert-file=${tls}/server/tls.crt`,
      `--tls-private-key-file=${tls}/server/tls.key`,
      '--root-directory=',
      `--client-ca-file=${tls}/ca/root/tls.crt`,
      ...(etcd === undefined
        ? ['--embedded-etcd-directory=/var/etcd']
        : [
            `--etcd-servers=${etcd.endpoints.join(',')}`,
            `--etcd-prefix=${etcd.prefix}`,
            `--etcd-cafile=${etcdTls}/ca.crt`,
            `--etcd-certfile=${etcdTls}/tls.crt`,
            `--etcd-keyfile=${etcdTls}/tls.key`,
          ]),
      ...(verbosity === undefined ? [] : [`-v=${verbosity}`]),
      ...extra.args,
    ],
    mounted: { [`${tls}/server`]: 'serving', [`${tls}/ca/root`]: 'ca', ...(etcd !== undefined && { [etcdTls]: 'etcd' as const }) },
    scratch: etcd === undefined ? ['/var/etcd'] : [],
    port: 6443,
  };
}

/**
 * A FrontProxy of kcp-operator. `auth`: with every member of its spec.auth. The root shard is
 * called `root`; another shard is called `birch`.
 */
export function operatorFrontProxy({ auth }: Readonly<{ auth: boolean }>, extra: Extra = none): Manifest {
  const own = '/etc/kcp-front-proxy';
  const shards = ['root', 'birch'];
  return {
    command: [
      '/kcp-front-proxy',
      '--secure-port=6443',
      `--root-kubeconfig=${own}/kubeconfig/kubeconfig`,
      `--shards-kubeconfig=${own}/kubeconfig/kubeconfig`,
      `--tls-private-key-file=${own}/tls/tls.key`,
      `--tls-cert-file=${own}/tls/tls.crt`,
      `--mapping-file=${own}/config/path-mapping.yaml`,
      `--client-ca-file=${own}/client-ca/tls.crt`,
      '--requestheader-client-ca-file=/etc/kcp/tls/ca/requestheader-client/tls.crt',
      '--requestheader-allowed-names=kcp-front-proxy,kcp-mounts-proxy',
      '--requestheader-username-headers=X-Remote-User',
      '--requestheader-group-headers=X-Remote-Group',
      '--requestheader-extra-headers-prefix=X-Remote-Extra-',
      ...(auth
        ? ['--authentication-drop-groups="dropped,gone"', '--authentication-pass-on-groups="team,dropped,system:authenticated"', '-v=4']
        : []),
      ...extra.args,
      ...(auth
        ? [
            '--oidc-issuer-url=https://issuer.example/realm',
            '--oidc-client-id=kcp',
            '--oidc-groups-claim=groups',
            '--oidc-username-claim=email',
            '--oidc-username-prefix=oidc:',
            '--oidc-groups-prefix=oidc:',
            '--oidc-ca-file=/etc/kcp/tls/oidc/tls.crt',
            '--authentication-token-webhook-cache-ttl=2m0s',
            '--authentication-token-webhook-version=v1',
            '--authentication-token-webhook-config-file=/etc/kcp/authentication/webhook/kubeconfig',
            '--token-auth-file=/etc/kcp/authentication/token/token.csv',
            '--service-account-lookup=false',
            ...shards.map((shard) => `--service-account-key-file=/etc/kcp/tls/${shard}/service-account/tls.crt`),
          ]
        : []),
    ],
    mounted: {
      [`${own}/kubeconfig`]: 'kubeconfig',
      [`${own}/kubeconfig-client-cert`]: 'client',
      [`${own}/tls`]: 'serving',
      [`${own}/requestheader-client`]: 'client',
      '/etc/kcp/tls/ca': 'ca',
      '/etc/kcp/tls/ca/requestheader-client': 'ca',
      [`${own}/client-ca`]: 'ca',
      [`${own}/config`]: 'mapping',
      ...(auth && {
        '/etc/kcp/tls/oidc': 'ca',
        '/etc/kcp/authentication/webhook': 'kubeconfig',
        '/etc/kcp/authentication/token': 'tokens',
        ...Object.fromEntries(shards.map((shard) => [`/etc/kcp/tls/${shard}/service-account`, 'service-account' as const])),
      }),
    },
    scratch: [],
    port: 6443,
  };
}

/** The chart `cache`, with its default values. */
export function chartCacheServer(extra: Extra): Manifest {
  return {
    command: [
      '/cache-server',
      '--embedded-etcd-client-port=8010',
      '--embedded-etcd-peer-port=8011',
      '--secure-port=8012',
      '--synthetic-delay=0s',
      '--tls-private-key-file=/etc/cache/tls/server/tls.key',
      '--tls-cert-file=/etc/cache/tls/server/tls.crt',
      '--v=3',
      ...extra.args,
    ],
    mounted: { '/etc/cache/tls/ca': 'ca', '/etc/cache/tls/server': 'serving' },
    scratch: [],
    port: 8012,
  };
}

/**
 * The front proxy of the chart `kcp`, with its default values. `auth`: with a profiler, an issuer
 * and a token file.
 */
export function chartFrontProxy({ auth }: Readonly<{ auth: boolean }>, extra: Extra = none): Manifest {
  const own = '/etc/kcp-front-proxy';
  return {
    command: [
      '/kcp-front-proxy',
      '--secure-port=8443',
      `--root-kubeconfig=${own}/kubeconfig/kubeconfig`,
      `--shards-kubeconfig=${own}/kubeconfig/kubeconfig`,
      `--tls-private-key-file=${own}/tls/tls.key`,
      `--tls-cert-file=${own}/tls/tls.crt`,
      `--client-ca-file=${own}/client-ca/tls.crt`,
      '--requestheader-client-ca-file=/etc/kcp/tls/requestheader-client-ca/tls.crt',
      '--requestheader-allowed-names=kcp-mounts-proxy',
      '--requestheader-username-headers=X-Remote-User',
      '--requestheader-group-headers=X-Remote-Group',
      '--requestheader-extra-headers-prefix=X-Remote-Extra-',
      '--service-account-key-file=/etc/kcp/tls/service-account/tls.key',
      `--mapping-file=${own}/config/path-mapping.yaml`,
      '--v=4',
      '--logging-format=json',
      ...(auth
        ? [
            '--profiler-address=localhost:6060',
            '--oidc-issuer-url=https://issuer.example/realm',
            '--oidc-client-id=kcp',
            '--oidc-groups-claim=groups',
            '--oidc-username-claim=sub',
            '--oidc-username-prefix=oidc:',
            '--oidc-groups-prefix=oidc:',
            '--oidc-ca-file=/etc/kcp/tls/oidc/tls.crt',
            '--token-auth-file=/etc/kcp/token-auth/auth-token.csv',
          ]
        : []),
      ...extra.args,
    ],
    mounted: {
      [`${own}/kubeconfig`]: 'kubeconfig',
      [`${own}/kubeconfig-client-cert`]: 'client',
      [`${own}/tls`]: 'serving',
      [`${own}/client-ca`]: 'ca',
      '/etc/kcp/tls/requestheader-client-ca': 'ca',
      '/etc/kcp/tls/service-account': 'service-account',
      [`${own}/config`]: 'mapping',
      ...(auth && { '/etc/kcp/tls/oidc': 'ca', '/etc/kcp/token-auth': 'tokens' }),
      '/etc/kcp/tls/ca': 'ca',
      [`${own}/requestheader-client`]: 'client',
    },
    scratch: [],
    port: 8443,
    user: 65_532,
  };
}
