/**
 * Reads from a kubeconfig how to reach a shard. The library parses the file's entries and runs exec plugins. Only those
 * two modules of it are loaded, because the whole of it takes 75 MB for APIs that are not used here.
 *
 * K1 What we cannot do is refused when the file is read: a proxy, a password, impersonation, an auth-provider.
 * K2 A certificate goes unchecked only when the file asks for it and `allowInsecure` agrees.
 * K3 The server's path is cut before `/clusters/`: the logical cluster of a context does not matter to a reader of all of them.
 * K4 Token files and plugins are asked before every request; certificates are read once.
 */
import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { dirname, resolve } from 'node:path';
import { newClusters, newContexts, newUsers, type User } from '@kubernetes/client-node/dist/config_types.js';
import { ExecAuth } from '@kubernetes/client-node/dist/exec_auth.js';
import { parseConfigDocument } from '../domain/config-document.js';
import { CacheError } from '../domain/errors.js';
import type { Credentials, ShardAccess } from './shard-access.js';

export type KubeconfigOptions = Readonly<{
  path: string;
  /** Undefined: the file's own current one. */
  context: string | undefined;
  allowInsecure: boolean;
}>;

/** Throws CacheError with what is wrong and where. */
export async function loadKubeconfig({ path, context, allowInsecure }: KubeconfigOptions): Promise<ShardAccess> {
  const fail = (why: string, cause?: unknown): CacheError => new CacheError(`${path}: ${why}`, { cause });
  const { contexts, clusters, users, current } = parseEntries(await readFile(path, 'utf8'), fail);
  const wanted = context ?? current;
  const found = contexts.find(({ name }) => name === wanted);
  if (found === undefined) throw fail(`there is no context ${JSON.stringify(wanted)}, but ${contexts.map(({ name }) => name).join(', ')}`);
  const cluster = clusters.find(({ name }) => name === found.cluster);
  if (cluster === undefined) throw fail(`the context ${found.name} names the cluster ${found.cluster}, which is not there`);
  const entry = users.find(({ user }) => user.name === found.user);
  if (entry === undefined) throw fail(`the context ${found.name} names the user ${found.user}, which is not there`);

  const { user } = entry;
  if (cluster.proxyUrl !== undefined) throw fail(`the cluster ${cluster.name} is behind a proxy, which is not supported`);
  if (cluster.skipTLSVerify && !allowInsecure) throw fail(`the cluster ${cluster.name} asks for TLS without a check of the certificate`);
  const unsupported = [user.username, user.password, user.impersonateUser, user.authProvider].some((value) => isSaid(value));
  if (unsupported) throw fail(`the user ${user.name} needs more than a certificate, a token or an exec plugin, which is not supported`);

  const fileIn = (name: string): string => resolve(dirname(path), name);
  const textOf = async (data: string | undefined, file: string | undefined): Promise<string | undefined> => {
    if (isSaid(data)) return Buffer.from(data, 'base64').toString('utf8');
    return isSaid(file) ? readFile(fileIn(file), 'utf8') : undefined;
  };
  const [ca, certificate, key] = await Promise.all([
    textOf(cluster.caData, cluster.caFile),
    textOf(user.certData, user.certFile),
    textOf(user.keyData, user.keyFile),
  ]);
  const fixed: Credentials = { ...(certificate !== undefined && { certificate }), ...(key !== undefined && { key }) };
  return {
    server: serverOf(cluster.server, fail),
    ca,
    serverName: cluster.tlsServerName,
    insecure: cluster.skipTLSVerify,
    credentials: credentialsOf(user, fixed, entry.tokenFile === undefined ? undefined : fileIn(entry.tokenFile)),
  };
}

type Fail = (why: string, cause?: unknown) => CacheError;
type Entries = Readonly<{
  contexts: ReturnType<typeof newContexts>;
  clusters: ReturnType<typeof newClusters>;
  /** The library knows no `tokenFile`. */
  users: readonly Readonly<{ user: User; tokenFile: string | undefined }>[];
  current: string | undefined;
}>;

function parseEntries(text: string, fail: Fail): Entries {
  try {
    const value: unknown = parseConfigDocument(text).value;
    const all = (typeof value === 'object' && value !== null ? value : {}) as Readonly<Record<string, unknown>>;
    const raw = (Array.isArray(all['users']) ? all['users'] : []) as readonly { user?: { tokenFile?: unknown } }[];
    const tokenFileOf = (index: number): string | undefined => {
      const file = raw[index]?.user?.tokenFile;
      return typeof file === 'string' ? file : undefined;
    };
    return {
      contexts: newContexts(all['contexts']),
      clusters: newClusters(all['clusters']),
      users: newUsers(all['users']).map((user, index) => ({ user, tokenFile: tokenFileOf(index) })),
      current: typeof all['current-context'] === 'string' ? all['current-context'] : undefined,
    };
  } catch (error) {
    throw fail(`this is no kubeconfig: ${error instanceof Error ? error.message : String(error)}`, error);
  }
}

function serverOf(server: string, fail: Fail): string {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url === undefined || url.protocol !== 'https:') throw fail(`${server} is no https URL`);
  return `${url.origin}${url.pathname.replace(/\/clusters\/.*$/, '').replace(/\/$/, '')}`;
}

function credentialsOf(user: User, fixed: Credentials, tokenFile: string | undefined): ShardAccess['credentials'] {
  if (isSaid(user.exec)) {
    const plugin = new ExecAuth();
    return async () => {
      const options: RequestOptions = {};
      await plugin.applyAuthentication(user, options);
      return { ...fixed, ...issued(options) };
    };
  }
  if (tokenFile !== undefined) return async () => ({ ...fixed, authorization: `Bearer ${(await readFile(tokenFile, 'utf8')).trim()}` });
  const whole: Credentials = { ...fixed, ...(isSaid(user.token) && { authorization: `Bearer ${user.token}` }) };
  return () => Promise.resolve(whole);
}

/** What a plugin has put into the options of a request. */
function issued({ cert, key, headers }: RequestOptions): Credentials {
  const authorization = headers !== undefined && 'Authorization' in headers ? headers['Authorization'] : undefined;
  return {
    ...(typeof cert === 'string' && { certificate: cert }),
    ...(typeof key === 'string' && { key }),
    ...(typeof authorization === 'string' && { authorization }),
  };
}

/** The library gives null for what is not there. */
function isSaid<Value>(value: Value | null | undefined): value is Value {
  return value !== undefined && value !== null && value !== '';
}
