/**
 * The options of the commands beside `serve`: a flag and a variable each. The same flag means the same in every command, because they
 * share a variable.
 */
import { parseCanonicalPath, parseClusterName } from '../domain/cluster.js';
import { parseShardName } from '../domain/shard.js';
import { parseCacheUrl, parseCacheUrls } from './cache-url.js';
import { choice, directory, duration, file, list, name, neededFile, parsedBy, several, toggle } from './option.js';
import { options } from './options.js';

const expressionCharactersMax = 256;

/** `strata cert …` */
export const certOptions = {
  caDirectory: directory({
    flag: 'ca-directory',
    default: 'strata-ca',
    help: 'Where the authority is kept: ca.crt, to give to caches, and ca.key, to give to nobody. Made when neither is there.',
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

/** `strata backup`, `strata restore`, `strata check`: where the store lies, as `strata serve` has it. */
export const storeFileOptions = {
  rootDirectory: directory({ flag: 'root-directory', default: options.rootDirectory.default, help: options.rootDirectory.help }),
  dataDirectory: file({ flag: 'data-directory', help: 'Where the store is kept; data in the root directory when left out.' }),
} as const;

const { etcdServers, etcdPrefix, etcdCaFile, etcdCertFile, etcdKeyFile, etcdTimeoutMs } = options;
/** How an etcd that is named is reached. */
const etcdAccess = { etcdPrefix, etcdCaFile, etcdCertFile, etcdKeyFile, etcdTimeoutMs } as const;

/** `strata check` */
export const checkOptions = { ...storeFileOptions, etcdServers, ...etcdAccess } as const;

/** `strata copy` */
const storeText = {
  placeholder: 'store',
  accepts: 'sqlite:DIRECTORY, the data directory of a server, or etcd:URL,URL…',
  parse: parseStoreName,
} as const;
export const copyOptions = {
  from: parsedBy({ ...storeText, flag: 'from', help: 'The store to copy, of servers that are stopped.' }),
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
  accepts: 'the URL of a cache without a path, such as https://localhost:6443',
  help: 'The cache to ask.',
} as const;
const certificate = { flag: 'cert-file', help: 'The client certificate (PEM) to show.' } as const;
const key = { flag: 'key-file', help: 'The key (PEM) of the client certificate.' } as const;
const certFile = neededFile(certificate);
const keyFile = neededFile(key);
const caFile = file({ flag: 'ca-file', help: 'The CAs (PEM) that sign the certificate of the cache; without it those that Node trusts.' });

/** Of every command that asks a cache as an operator does. */
export const operatorOptions = {
  cacheKubeconfig: file({
    flag: 'cache-kubeconfig',
    help: 'A kubeconfig, such as `strata kubeconfig` prints, instead of the four that follow: its current context. With one of them, the command is refused.',
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
    help: 'Words and tables for people, or JSON for programs, as the cache sent it where nothing else is said.',
  }),
} as const;

/** `strata status` */
export const statusOptions = {
  ...operatorOptions,
  watch: toggle({
    flag: 'watch',
    default: 'false',
    help: 'Shows it again every two seconds, until it is interrupted; as JSON, a line each time.',
  }),
} as const;

/** `strata kubeconfig` */
export const kubeconfigOptions = {
  cache: parsedBy({ ...cacheUrl, placeholder: 'url', parse: parseCacheUrl }),
  caFile,
  certFile,
  keyFile,
  shard: name({
    flag: 'shard',
    accepts: 'the name of a shard',
    parse: parseShardName,
    help: 'The shard to look at; all of them when left out.',
  }),
  cluster: name({
    flag: 'cluster',
    accepts: 'the name of a logical cluster or a canonical path',
    parse: (text) => parseClusterName(text) ?? parseCanonicalPath(text),
    help: 'The logical cluster to look at, or a canonical path, which is for reading alone; all of them when left out.',
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

/** kcp-operator passes two groups as `"one,other"`. For pflag that is the name of one, which nobody is in: a front door that drops it drops nobody. */
const groupPatterns = {
  splitsQuoted: true,
  pattern: /^[^,\s]{1,256}$/,
  accepts: 'names of groups, or their beginnings with a * behind them, separated by commas',
} as const;

const commonNames = { pattern: /^[^,]{1,256}$/, accepts: 'common names of certificates, separated by commas' } as const;

/** `strata proxy`, beside those of a server. */
export const proxyOptions = {
  mappingFile: neededFile({ flag: 'mapping-file', help: "Which requests go to which backend: a mapping file of kcp's front proxy." }),
  requestheaderCaFile: file({
    flag: 'requestheader-client-ca-file',
    help: 'The CAs (PEM) of authenticating proxies: their certificates may say in X-Remote-User, X-Remote-Group and X-Remote-Extra-… for whom they ask.',
  }),
  requestheaderNames: list({
    ...commonNames,
    flag: 'requestheader-allowed-names',
    default: '',
    help: 'The CNs of certificates that may do so; any of those CAs when empty.',
  }),
  passedGroups: list({
    ...groupPatterns,
    flag: 'authentication-pass-on-groups',
    default: '',
    help: 'Groups of client certificates that backends hear of; all when empty.',
  }),
  droppedGroups: list({
    ...groupPatterns,
    flag: 'authentication-drop-groups',
    default: '',
    help: 'Groups that backends never hear of, beside those that only kcp itself may be in, such as system:masters.',
  }),
  corsOrigins: several({
    flag: 'cors-allowed-origins',
    placeholder: 'expressions',
    accepts: 'regular expressions separated by commas, each of at most 256 characters',
    parse: parseExpressions,
    help: 'Whose pages may ask across origins: an origin counts when one of these expressions is found in it, so begin with ^ and end with $.',
  }),
} as const;

/** `strata push` */
export const agentOptions = {
  kubeconfig: neededFile({ flag: 'kubeconfig', help: 'The kubeconfig of the shard to read.' }),
  context: parsedBy({
    flag: 'context',
    placeholder: 'name',
    accepts: 'the name of a context',
    parse: (text) => text,
    help: 'The context of the kubeconfig to use; its current one when left out.',
  }),
  allowInsecure: toggle({
    flag: 'allow-insecure-kubeconfig',
    default: 'false',
    help: 'Takes a kubeconfig that asks not to check the certificate of the shard; it is refused otherwise.',
  }),
  shardName: parsedBy({
    flag: 'shard-name',
    placeholder: 'name',
    accepts: 'the name of a shard',
    parse: parseShardName,
    help: 'The shard to push for; the certificate must speak for it.',
  }),
  caches: several({
    flag: 'cache',
    placeholder: 'url',
    accepts: 'one or several URLs of caches without a path, such as https://localhost:6443',
    parse: (urls) => (urls.length === 0 ? undefined : parseCacheUrls(urls)),
    help: 'The cache to push into. Given several times, or several separated by commas, they are tried in turn.',
  }),
  caFile: file({ flag: 'cache-ca-file', help: 'The CAs (PEM) that sign the certificate of the cache; without it those that Node trusts.' }),
  certFile,
  keyFile,
  takesOver: toggle({
    flag: 'take-over',
    default: 'false',
    help: 'Takes the shard from its present pusher at once; otherwise this one waits as a standby until that is gone.',
  }),
  systemClusters: options.systemClusters,
  pushesPaths: toggle({
    flag: 'push-paths',
    default: 'false',
    help: 'Pushes what paths are resolved by as well: an entry of each LogicalCluster and each Workspace.',
  }),
  logLevel: options.logLevel,
  logFormat: options.logFormat,
} as const;
