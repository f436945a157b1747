/**
 * The options of all commands but `serve`. Each has a flag and an environment variable. A flag
 * means the same in every command, because the commands share its variable.
 */
import { parseCanonicalPath, parseClusterName } from '../../domain/cluster.js';
import { parseShardName } from '../../domain/shard.js';
import { parseCacheUrl, parseCacheUrls } from './link-options.js';
import { bindAddress, choice, directory, duration, file, list, name, neededFile, parsedBy, several, toggle } from './option.js';
import { options } from './options.js';

const expressionCharactersMax = 256;
const textCharactersMax = 256;

export const certOptions = {
  caDirectory: directory({
    flag: 'ca-directory',
    default: 'strata-ca',
    help: 'The directory of the certificate authority: ca.crt, to give to caches, and ca.key, to give to nobody. The command makes both if neither exists.',
  }),
  outDirectory: directory({ flag: 'out-directory', default: '.', help: 'Where the certificate and its key are written.' }),
  validityMs: duration({
    flag: 'validity',
    default: '365d',
    min: '1m',
    max: '3650d',
    help: 'How long the certificate is valid.',
  }),
  force: toggle({ flag: 'force', default: 'false', help: 'Replaces a certificate and a key that are there already.' }),
} as const;

/** `strata backup`, `strata restore`, `strata check`: where `strata serve` keeps its store. */
export const storeFileOptions = {
  rootDirectory: directory({ flag: 'root-directory', default: options.rootDirectory.default, help: options.rootDirectory.help }),
  dataDirectory: file({ flag: 'data-directory', help: 'Where the store is kept; by default, in the folder data of the root directory.' }),
} as const;

const { etcdServers, etcdPrefix, etcdCaFile, etcdCertFile, etcdKeyFile, etcdTimeoutMs } = options;
const etcdAccess = { etcdPrefix, etcdCaFile, etcdCertFile, etcdKeyFile, etcdTimeoutMs } as const;

export const checkOptions = { ...storeFileOptions, etcdServers, ...etcdAccess } as const;

const storeText = {
  placeholder: 'store',
  acceptedValues: 'sqlite:DIRECTORY, the data directory of a server, or etcd:URL,URL…',
  parse: parseStoreName,
} as const;
export const copyOptions = {
  from: parsedBy({ ...storeText, flag: 'from', help: 'The store to copy; stop its servers first.' }),
  to: parsedBy({ ...storeText, flag: 'to', help: 'The store to copy to, which must be empty.' }),
  ...etcdAccess,
} as const;

export type StoreName = Readonly<{ engine: 'sqlite' | 'etcd'; place: string }>;

function parseStoreName(text: string): StoreName | undefined {
  const [, engine, place = ''] = /^(sqlite|etcd):(.+)$/.exec(text) ?? [];
  return engine === undefined ? undefined : { engine: engine as StoreName['engine'], place };
}

const cacheUrl = {
  flag: 'cache',
  acceptedValues: 'the URL of a cache without a path, such as https://localhost:6443',
  help: 'The cache to ask.',
} as const;
const certificate = { flag: 'cert-file', help: 'The client certificate (PEM) to show.' } as const;
const key = { flag: 'key-file', help: 'The key (PEM) of the client certificate.' } as const;
const certFile = neededFile(certificate);
const keyFile = neededFile(key);
const caFile = file({ flag: 'ca-file', help: 'The CAs (PEM) that sign the certificate of the cache; without it those that Node trusts.' });

/** The options of every command that sends requests to a cache as an operator. */
export const operatorOptions = {
  cacheKubeconfig: file({
    flag: 'cache-kubeconfig',
    help: 'A kubeconfig such as `strata kubeconfig` prints; its current context must lead to the cache. It replaces --cache, --ca-file, --cert-file and --key-file: give none of them with it.',
  }),
  cache: name({ ...cacheUrl, parse: parseCacheUrl }),
  caFile,
  certFile: file(certificate),
  keyFile: file(key),
  timeoutMs: duration({ flag: 'timeout', default: '60s', min: '100ms', max: '1h', help: 'How long the cache may take to answer.' }),
  output: choice({
    flag: 'output',
    default: 'table',
    words: ['table', 'json'],
    help: 'table: words and tables for people. json: JSON for programs; if nothing else is documented, the answer of the cache.',
  }),
} as const;

export const statusOptions = {
  ...operatorOptions,
  watch: toggle({
    flag: 'watch',
    default: 'false',
    help: 'Shows the status again every two seconds until you interrupt it; with --output=json, as one line each time.',
  }),
} as const;

export const kubeconfigOptions = {
  cache: parsedBy({ ...cacheUrl, placeholder: 'url', parse: parseCacheUrl }),
  caFile,
  certFile,
  keyFile,
  shard: name({
    flag: 'shard',
    acceptedValues: 'the name of a shard',
    parse: parseShardName,
    help: 'The shard to look at; all of them when left out.',
  }),
  cluster: name({
    flag: 'cluster',
    acceptedValues: 'the name of a logical cluster or a canonical path',
    parse: (text) => parseClusterName(text) ?? parseCanonicalPath(text),
    help: 'The logical cluster to look at, or its canonical path, by which one can only read; all logical clusters when left out.',
  }),
} as const;

function parseExpressions(expressions: readonly string[]): readonly RegExp[] | undefined {
  try {
    return expressions.every(({ length }) => length > 0 && length <= expressionCharactersMax)
      ? expressions.map((each) => new RegExp(each))
      : undefined;
  } catch {
    return undefined;
  }
}

/**
 * kcp-operator passes two groups as `"one,other"`. pflag reads that as the name of one group, so a
 * front door that should drop both groups would drop neither.
 */
const groupPatterns = {
  splitsQuoted: true,
  pattern: /^[^,\s]{1,256}$/,
  acceptedValues: 'names of groups, or prefixes with a * behind them, separated by commas',
} as const;

const commonNames = { pattern: /^[^,]{1,256}$/, acceptedValues: 'common names of certificates, separated by commas' } as const;

const anyText = {
  acceptedValues: 'a string of at most 256 characters',
  parse: (text: string) => (text.length <= textCharactersMax ? text : undefined),
} as const;

/** May be given several times. A comma does not separate values. */
const lines = { repeatable: true, parse: linesOf } as const;

function linesOf(text: string): readonly string[] {
  return text.split('\n').filter((each) => each !== '');
}

function parseClaims(text: string): ReadonlyMap<string, string> | undefined {
  const claims = new Map<string, string>();
  for (const line of linesOf(text)) {
    const [name = '', ...value] = line.split('=');
    if (name.trim() === '' || value.length === 0) return undefined;
    claims.set(name.trim(), value.join('=').trim());
  }
  return claims;
}

/**
 * How the front door checks tokens. Without any of these options the shards check them.
 * kube-apiserver has the same names.
 */
export const tokenOptions = {
  tokenFile: file({ flag: 'token-auth-file', help: 'A CSV file of static tokens, one on each line: token,user,uid,"group,group".' }),
  serviceAccountKeyFiles: parsedBy({
    ...lines,
    flag: 'service-account-key-file',
    placeholder: 'file',
    acceptedValues: 'the path of a file',
    help: 'Keys or certificates (PEM), or a JSON Web Key Set, that verify the tokens of service accounts; give those of all shards. May be given several times.',
  }),
  serviceAccountIssuers: parsedBy({
    ...lines,
    flag: 'service-account-issuer',
    placeholder: 'issuer',
    acceptedValues: 'the name of an issuer',
    help: 'The issuer of the tokens of service accounts; https://kcp.default.svc when left out. May be given several times.',
  }),
  serviceAccountLookup: toggle({
    flag: 'service-account-lookup',
    default: 'true',
    help: 'true: the shard checks the token of a service account, and whether the service account still exists. false: the front door verifies the token by --service-account-key-file.',
  }),
  apiAudiences: list({
    pattern: /^.{1,256}$/,
    acceptedValues: 'audiences, separated by commas',
    flag: 'api-audiences',
    default: '',
    help: 'The audiences of which the token of a service account must have one; its issuers when empty.',
  }),
  authenticationConfig: file({
    flag: 'authentication-config',
    help: 'A file of issuers, instead of the options --oidc-…: an AuthenticationConfiguration of kube-apiserver, without expressions (CEL).',
  }),
  webhookConfig: file({
    flag: 'authentication-token-webhook-config-file',
    help: 'A kubeconfig of the webhook to which the front door sends each token that no other option knows.',
  }),
  webhookVersion: choice({
    flag: 'authentication-token-webhook-version',
    default: 'v1beta1',
    words: ['v1beta1', 'v1'],
    help: 'The version of the TokenReview that the front door sends to the webhook.',
  }),
  webhookCacheTtlMs: duration({
    flag: 'authentication-token-webhook-cache-ttl',
    default: '2m',
    min: '0s',
    max: '1h',
    help: 'How long the front door keeps an answer of the webhook about a token.',
  }),
  oidcIssuerUrl: name({
    ...anyText,
    flag: 'oidc-issuer-url',
    help: 'The OpenID Connect issuer whose tokens are accepted: its URL, exactly as the claim iss of its tokens has it.',
  }),
  oidcClientId: name({ ...anyText, flag: 'oidc-client-id', help: 'The audience that the tokens of this issuer must have.' }),
  oidcCaFile: file({
    flag: 'oidc-ca-file',
    help: 'The CAs (PEM) that sign the certificate of the issuer; without it those that Node trusts.',
  }),
  oidcUsernameClaim: name({ ...anyText, flag: 'oidc-username-claim', help: 'The claim that is the name of the user; sub when left out.' }),
  oidcUsernamePrefix: name({
    ...anyText,
    flag: 'oidc-username-prefix',
    help: 'The prefix of that name; - for none. When left out it is the URL of the issuer and #, or none if the claim is email.',
  }),
  oidcGroupsClaim: name({
    ...anyText,
    flag: 'oidc-groups-claim',
    help: 'The claim that has the groups: one string, or a list of strings.',
  }),
  oidcGroupsPrefix: name({ ...anyText, flag: 'oidc-groups-prefix', help: 'The prefix of each of these groups.' }),
  oidcRequiredClaims: parsedBy({
    flag: 'oidc-required-claim',
    placeholder: 'claim=value',
    acceptedValues: 'claim=value',
    repeatable: true,
    parse: parseClaims,
    help: 'A claim that tokens must have, with this value. May be given several times.',
  }),
  oidcSigningAlgorithms: list({
    pattern: /^(?:RS|ES|PS)(?:256|384|512)$/,
    acceptedValues: 'RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384 or PS512, separated by commas',
    flag: 'oidc-signing-algs',
    default: '',
    help: 'The algorithms that may sign the tokens of this issuer; RS256 when empty.',
  }),
} as const;

/** `strata proxy`, in addition to the options of a server. */
export const proxyOptions = {
  mappingFile: neededFile({ flag: 'mapping-file', help: "Which requests go to which backend: a mapping file of kcp's front proxy." }),
  requestheaderCaFile: file({
    flag: 'requestheader-client-ca-file',
    help: 'The CAs (PEM) of authenticating proxies, whose requests name the user in the headers X-Remote-User, X-Remote-Group and X-Remote-Extra-*.',
  }),
  requestheaderNames: list({
    ...commonNames,
    flag: 'requestheader-allowed-names',
    default: '',
    help: 'The common names (CN) of the proxies that may name a user; when empty, every certificate of those CAs may.',
  }),
  passedGroups: list({
    ...groupPatterns,
    flag: 'authentication-pass-on-groups',
    default: '',
    help: 'The groups that the front door passes on to backends; all when empty.',
  }),
  droppedGroups: list({
    ...groupPatterns,
    flag: 'authentication-drop-groups',
    default: '',
    help: 'Groups that the front door never passes on to backends, besides those that only kcp itself may be in, such as system:masters.',
  }),
  ...tokenOptions,
  corsOrigins: several({
    flag: 'cors-allowed-origins',
    placeholder: 'expressions',
    acceptedValues: 'regular expressions separated by commas, each of at most 256 characters',
    parse: parseExpressions,
    help: 'The origins whose pages may send requests here (CORS). An expression that matches any part of an origin allows it, so begin with ^ and end with $.',
  }),
} as const;

export const agentOptions = {
  kubeconfig: neededFile({ flag: 'kubeconfig', help: 'The kubeconfig of the shard to read.' }),
  context: parsedBy({
    flag: 'context',
    placeholder: 'name',
    acceptedValues: 'the name of a context',
    parse: (text) => text,
    help: 'The context of the kubeconfig to use; its current one when left out.',
  }),
  allowInsecure: toggle({
    flag: 'allow-insecure-kubeconfig',
    default: 'false',
    help: 'Accepts a kubeconfig with insecure-skip-tls-verify, so that the agent does not check the certificate of the shard; otherwise it refuses the file.',
  }),
  shardName: parsedBy({
    flag: 'shard-name',
    placeholder: 'name',
    acceptedValues: 'the name of a shard',
    parse: parseShardName,
    help: 'The shard to push for; the certificate must speak for it.',
  }),
  caches: several({
    flag: 'cache',
    placeholder: 'url',
    acceptedValues: 'one or several URLs of caches without a path, such as https://localhost:6443',
    parse: (urls) => (urls.length === 0 ? undefined : parseCacheUrls(urls)),
    help: 'The cache to push into. Given several times, or several separated by commas, they are tried in turn.',
  }),
  caFile: file({ flag: 'cache-ca-file', help: 'The CAs (PEM) that sign the certificate of the cache; without it those that Node trusts.' }),
  certFile,
  keyFile,
  takesOver: toggle({
    flag: 'take-over',
    default: 'false',
    help: 'Takes the shard from its present pusher at once; otherwise this agent waits as a standby until that pusher is gone.',
  }),
  systemClusters: options.systemClusters,
  typesFile: options.typesFile,
  pushesPaths: toggle({
    flag: 'push-paths',
    default: 'false',
    help: 'Also pushes the entries by which paths are resolved: one for each LogicalCluster and each Workspace.',
  }),
  metricsBindAddress: bindAddress({
    flag: 'metrics-bind-address',
    help: 'The address at which the agent answers /livez, /readyz and /metrics over plain HTTP, to everybody who reaches it.',
  }),
  logLevel: options.logLevel,
  logFormat: options.logFormat,
} as const;
