/**
 * One context of a kubeconfig. The Kubernetes client library parses the file's entries. Only its
 * parser is loaded, because the whole library takes 75 MB for APIs that are not used here.
 *
 * K1 Unsupported features are refused when the file is read: a proxy, a password, impersonation, an
 *    auth-provider, and a plugin that needs a terminal.
 * K2 TLS without certificate verification needs both the file's request and `allowInsecure`.
 * K3 The server's path is cut before `/clusters/`: the agent reads all logical clusters, whatever
 *    the context names.
 *
 * No error quotes a value of a user's entry or a YAML syntax error, because either may be a secret.
 */
import { dirname, resolve } from 'node:path';
import { newClusters, newContexts, newUsers, type User } from '@kubernetes/client-node/dist/config_types.js';
import { ConfigSyntaxError, parseConfigDocument } from '../../json/config-document.js';
import { CacheError } from '../../domain/errors.js';
import { isObject, itemsOf, membersOf, textAt } from '../../domain/base/members.js';
import { parseExecCommand, type ExecCommand } from './exec-command.js';

export type KubeconfigOptions = Readonly<{
  path: string;
  /** Undefined: the file's current context. */
  context: string | undefined;
  allowInsecure: boolean;
}>;

/** A PEM text, or the path of its file; `name`: its name in errors. */
export type PemSource = Readonly<{ name: string; text: string } | { name: string; file: string }>;

export type KubeconfigEntry = Readonly<{
  context: string;
  server: string;
  serverName: string | undefined;
  insecure: boolean;
  ca: PemSource | undefined;
  /** Both or neither. */
  certificate: PemSource | undefined;
  key: PemSource | undefined;
  token: string | undefined;
  /** As in client-go, it takes precedence over `token`. */
  tokenFile: string | undefined;
  /**
   * Undefined if the user has a certificate or a token: like client-go, the agent then runs no
   * plugin.
   */
  exec: ExecCommand | undefined;
}>;

/** `text` is the content of `path`. Throws CacheError with what is wrong and where. */
export function parseKubeconfigEntry(text: string, { path, context, allowInsecure }: KubeconfigOptions): KubeconfigEntry {
  const fail: Fail = (why) => new CacheError(`${path}: ${why}`);
  const { contexts, clusters, users, current } = parseEntries(text, fail);
  const wanted = context ?? current;
  const found = contexts.find(({ name }) => name === wanted);
  if (wanted === undefined || wanted === '') throw fail('it has no current context');
  if (found === undefined) throw fail(`there is no context ${JSON.stringify(wanted)}, but ${contexts.map(({ name }) => name).join(', ')}`);
  const ofContext = clusters.find(({ cluster }) => cluster.name === found.cluster);
  if (ofContext === undefined) throw fail(`the context ${found.name} names the cluster ${found.cluster}, which is not there`);
  const entry = users.find(({ user }) => user.name === found.user);
  if (entry === undefined) throw fail(`the context ${found.name} names the user ${found.user}, which is not there`);

  const { user } = entry;
  const { cluster, raw } = ofContext;
  if (isPresent(cluster.proxyUrl)) throw fail(`the cluster ${cluster.name} is behind a proxy, which is not supported`);
  if (cluster.skipTLSVerify && !allowInsecure)
    throw fail(`the cluster ${cluster.name} has insecure-skip-tls-verify; strata push accepts that only with --allow-insecure-kubeconfig`);
  checkTypes(entry.raw, `the user ${user.name}`, userTypes, fail);
  checkTypes(raw, `the cluster ${cluster.name}`, clusterTypes, fail);
  if (cluster.skipTLSVerify && (isPresent(cluster.caData) || isPresent(cluster.caFile)))
    throw fail(`the cluster ${cluster.name} has a certificate authority and insecure-skip-tls-verify; remove one of them`);
  const said = membersOf(entry.raw);
  const tokenFile = textAt(said, 'tokenFile') || undefined;
  if (unsupported.some((name) => isPresent(said[name])))
    throw fail(`the user ${user.name} needs more than a certificate, a token or an exec plugin, which is not supported`);

  const folder = dirname(path);
  const pem = (data: string | undefined, file: string | undefined, name: string): PemSource | undefined => {
    if (isPresent(data) && isPresent(file)) throw fail(`it has both ${name} and ${name}-data`);
    if (isPresent(data)) return { name: `${path}: the ${name}-data`, text: Buffer.from(data, 'base64').toString('utf8') };
    return isPresent(file) ? { name: resolve(folder, file), file: resolve(folder, file) } : undefined;
  };
  const certificate = pem(user.certData, user.certFile, 'client-certificate');
  const key = pem(user.keyData, user.keyFile, 'client-key');
  if ((certificate === undefined) !== (key === undefined)) throw fail(`the user ${user.name} has only one of a certificate and its key`);
  const needsPlugin = isPresent(user.exec) && certificate === undefined && !isPresent(user.token) && tokenFile === undefined;
  return {
    context: found.name,
    server: serverOf(cluster.server, fail),
    serverName: cluster.tlsServerName,
    insecure: cluster.skipTLSVerify,
    ca: pem(cluster.caData, cluster.caFile, 'certificate-authority'),
    certificate,
    key,
    token: isPresent(user.token) ? user.token : undefined,
    tokenFile: tokenFile === undefined ? undefined : resolve(folder, tokenFile),
    exec: needsPlugin ? execOf(user, { folder, cluster: raw, fail }) : undefined,
  };
}

type Fail = (why: string) => CacheError;

const unsupported = ['username', 'password', 'auth-provider', 'as', 'as-uid', 'as-groups', 'as-user-extra'] as const;
/** Members that client-go refuses if they have another type. */
const clusterTypes = {
  string: ['tls-server-name', 'certificate-authority', 'certificate-authority-data', 'proxy-url'],
  boolean: ['insecure-skip-tls-verify'],
} as const;
const userTypes = {
  string: ['client-certificate', 'client-certificate-data', 'client-key', 'client-key-data', 'token', 'tokenFile'],
  boolean: [],
} as const;

/** Throws if a member has a wrong type, because such a member would be treated as absent. */
function checkTypes(raw: unknown, of: string, types: Readonly<Record<'string' | 'boolean', readonly string[]>>, fail: Fail): void {
  const members = membersOf(raw);
  for (const [type, names] of Object.entries(types))
    for (const name of names) {
      const value = members[name];
      if (value !== undefined && value !== null && typeof value !== type) throw fail(`${name} of ${of} is not a ${type}`);
    }
}
type Entries = Readonly<{
  contexts: ReturnType<typeof newContexts>;
  /** `raw`: the entry as in the file, because the library drops extensions. */
  clusters: readonly Readonly<{ cluster: ReturnType<typeof newClusters>[number]; raw: unknown }>[];
  /**
   * `raw`: the entry as in the file, because the library drops `tokenFile`, and of the
   * impersonation keeps only the user.
   */
  users: readonly Readonly<{ user: User; raw: unknown }>[];
  current: string | undefined;
}>;

function parseEntries(text: string, fail: Fail): Entries {
  const all = parseYaml(text, fail);
  for (const [name, expected] of [
    ['kind', 'Config'],
    ['apiVersion', 'v1'],
  ] as const)
    if (isPresent(all[name]) && all[name] !== expected) throw fail(`this is not a kubeconfig: its ${name} is not ${expected}`);
  const rawClusters = itemsOf(all['clusters']) as readonly { cluster?: unknown }[];
  const rawUsers = itemsOf(all['users']) as readonly { user?: unknown }[];
  for (const kind of ['contexts', 'clusters', 'users']) {
    const names = itemsOf(all[kind]).map((entry) => membersOf(entry)['name']);
    const twice = names.find((name, at) => names.indexOf(name) < at);
    if (twice !== undefined) throw fail(`it has two ${kind} of the name ${JSON.stringify(twice)}`);
  }
  for (const { user } of rawUsers)
    if (user !== undefined && user !== null && !isObject(user)) throw fail('it has a user that is not an object');
  try {
    return {
      contexts: newContexts(all['contexts']),
      clusters: newClusters(all['clusters']).map((cluster, index) => ({ cluster, raw: rawClusters[index]?.cluster })),
      users: newUsers(all['users']).map((user, index) => ({ user, raw: rawUsers[index]?.user })),
      current: typeof all['current-context'] === 'string' ? all['current-context'] : undefined,
    };
  } catch (error) {
    throw fail(`this is not a kubeconfig: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** The message of a YAML error is dropped, because it may quote the file. */
function parseYaml(text: string, fail: Fail): Readonly<Record<string, unknown>> {
  try {
    return membersOf(parseConfigDocument(text).value);
  } catch (error) {
    const line = error instanceof ConfigSyntaxError ? error.line : undefined;
    throw fail(`this is not a kubeconfig: ${line === undefined ? 'it' : `line ${line}`} is not YAML, or is ambiguous`);
  }
}

function serverOf(server: string, fail: Fail): string {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url === undefined || url.protocol !== 'https:')
    throw fail(`the server ${url === undefined ? '' : `${url.protocol}//${url.host} `}is not an https URL`);
  return `${url.origin}${url.pathname.split('/clusters/', 1)[0]!.replace(/\/$/, '')}`;
}

function execOf({ name, exec }: User, { folder, cluster, fail }: Readonly<{ folder: string; cluster: unknown; fail: Fail }>): ExecCommand {
  try {
    return parseExecCommand(exec, { folder, cluster });
  } catch (error) {
    throw fail(`the exec plugin of the user ${name} cannot be used: ${(error as Error).message}`);
  }
}

/** The library returns null for absent members. */
function isPresent<Value>(value: Value | null | undefined): value is Value {
  return value !== undefined && value !== null && value !== '';
}
