/**
 * Real servers in this process that form a tree: one authority, and for each child a certificate
 * that names it.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { TcpProxy } from './tcp-proxy.js';
import { TestAuthority } from './test-authority.js';
import { aServer, until, type Teardown, type TestServer, type TestServerOptions } from './test-server.js';

export type CacheOptions = Omit<TestServerOptions, 'authority'> & Readonly<{ parent?: TestServer; urls?: readonly string[] }>;

const everything = `
children:
  '*': {accept: [{shards: ['*']}], offer: [{types: ['*']}]}
`;
const everythingBothWays = `
parent:
  forward: [{types: ['*']}]
  follow: [{types: ['*']}]
${everything}`;

/**
 * Starts caches that trust each other; a cache without a policy of its own lets everything through.
 */
export async function aTree(t: Teardown) {
  const folder = await mkdtemp(join(tmpdir(), 'strata-tree-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const authority = new TestAuthority(folder);
  const linkFlags = async (name: string, parent: TestServer, urls: readonly string[] = [parent.url]) => {
    const { certificateFile, keyFile } = authority.issue({ user: name, groups: ['strata'], uris: [`strata://cache/${name}`] });
    return {
      'parent-urls': urls.join(','),
      'parent-ca-file': parent.certificateFile,
      'parent-cert-file': certificateFile,
      'parent-key-file': keyFile,
    };
  };
  return {
    authority,
    async cache(name: string, { parent, urls, flags = {}, config, ...options }: CacheOptions = {}): Promise<TestServer> {
      if (parent === undefined) return aServer(t, { ...options, flags, authority, config: config ?? everything });
      const link = await linkFlags(name, parent, urls);
      const ownConfig = options.frontDoor === undefined ? { config: config ?? everythingBothWays } : {};
      return aServer(t, { ...options, flags: { ...link, ...flags }, authority, ...ownConfig });
    },
    linkFlags,
  };
}

/** A connection to a cache that the test can cut. */
export async function aCutLink(t: ExecutionContext, to: TestServer) {
  const proxy = await TcpProxy.start(to.port);
  t.teardown(() => proxy.close());
  return {
    url: `https://127.0.0.1:${proxy.port}`,
    /** Breaks open connections; new ones lead nowhere. */
    down(): void {
      proxy.cut();
      proxy.blackhole();
    },
    up: (): void => proxy.heal(),
  };
}

/** The names of a type's objects that a cache holds, on all shards. */
export async function exportsOf(server: TestServer, resource = 'apiexports', version = 'v1alpha2'): Promise<readonly string[]> {
  const { text } = await server.client().raw('GET', `/services/cache/shards/*/clusters/*/apis/apis.kcp.io/${version}/${resource}`);
  return (JSON.parse(text) as { items: { metadata: { name: string } }[] }).items.map(({ metadata }) => metadata.name).toSorted();
}

/**
 * Passes once a cache holds exactly the APIExports of these names, in order and separated by
 * commas.
 */
export async function holds(t: ExecutionContext, server: TestServer, names: string): Promise<void> {
  let held = '';
  const isSo = async (): Promise<boolean> => {
    held = (await exportsOf(server)).join();
    return held === names;
  };
  await until(isSo).catch(() => t.fail(`holds ${held} instead of ${names}`));
  t.is(held, names);
}

/**
 * Watches the APIExports of a cache; returns a function that gives the events so far, as `ADDED
 * one`.
 */
export async function eventsOf(t: ExecutionContext, server: TestServer): Promise<() => readonly string[]> {
  const path = '/services/cache/shards/*/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports';
  const list = await server.client().raw('GET', path);
  const { resourceVersion } = (JSON.parse(list.text) as { metadata: { resourceVersion: string } }).metadata;
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const seen: string[] = [];
  const read = async (): Promise<void> => {
    for await (const { type, object } of server.client().watch(path, { query: { resourceVersion, watch: 'true' }, signal: stop.signal }))
      if (type !== 'BOOKMARK') seen.push(`${type} ${object.metadata.name ?? ''}`);
  };
  void read().catch(() => {});
  return () => seen;
}
