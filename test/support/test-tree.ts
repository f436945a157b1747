/** Real servers in this process that form a tree: one authority, each child with a certificate that names it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { TestAuthority } from './test-authority.js';
import { aServer, type TestServer, type TestServerOptions } from './test-server.js';

export type CacheOptions = Omit<TestServerOptions, 'authority'> & Readonly<{ parent?: TestServer; urls?: readonly string[] }>;

const everything = `
children:
  '*': {accept: [{types: ['*']}], offer: [{types: ['*']}]}
`;
const everythingBothWays = `
parent:
  forward: [{types: ['*']}]
  follow: [{types: ['*']}]
${everything}`;

/** Starts caches that trust each other; a cache without a policy of its own lets everything through. */
export async function aTree(t: ExecutionContext) {
  const folder = await mkdtemp(join(tmpdir(), 'strata-tree-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const authority = await TestAuthority.create(folder);
  return {
    authority,
    async cache(name: string, { parent, urls, flags = {}, config, ...options }: CacheOptions = {}): Promise<TestServer> {
      if (parent === undefined) return aServer(t, { ...options, flags, authority, config: config ?? everything });
      const { certificateFile, keyFile } = await authority.issue({ user: name, groups: ['strata'], uris: [`strata://cache/${name}`] });
      const link = {
        'parent-urls': (urls ?? [parent.url]).join(','),
        'parent-ca-file': parent.certificateFile,
        'parent-cert-file': certificateFile,
        'parent-key-file': keyFile,
      };
      return aServer(t, { ...options, flags: { ...link, ...flags }, authority, config: config ?? everythingBothWays });
    },
  };
}
