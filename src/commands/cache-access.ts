/** Where a command reaches a cache, and as whom: as its flags say, and a kubeconfig says what they leave out. */
import { readPair, readText, type SecureContextPair } from '../certificates/pair-files.js';
import { operatorOptions } from '../config/command-options.js';
import type { CommandValues } from '../config/command-values.js';
import { SettingsError } from '../config/settings-error.js';
import { CacheError } from '../domain/errors.js';

export type CacheOptions = CommandValues<typeof operatorOptions>;

/** `caSource`: where `ca` is from, for errors. */
export type CacheAccess = SecureContextPair &
  Readonly<{ cache: string; ca: string | undefined; caSource: string | undefined; serverName: string | undefined; timeoutMs: number }>;

/** Throws SettingsError when something is left out, CacheError when a file cannot be used. */
export async function openCacheAccess(options: CacheOptions): Promise<CacheAccess> {
  const { cacheKubeconfig, cache, caFile, certFile, keyFile, timeoutMs } = options;
  const config = cacheKubeconfig === undefined ? undefined : await readAccess(cacheKubeconfig);
  const own = caFile === undefined ? undefined : { ca: readText(caFile, 'CA of the cache'), caSource: caFile };
  const pair = certFile === undefined || keyFile === undefined ? config?.pair : readPair({ certFile, keyFile });
  const url = cache ?? config?.cache;
  if (url === undefined || pair === undefined) throw new SettingsError(leftOut(options, { url, pair }));
  return { cache: url, ...pair, ca: config?.ca, caSource: config && cacheKubeconfig, ...own, serverName: config?.serverName, timeoutMs };
}

async function readAccess(path: string) {
  // Loaded only where there is one: a server loads every command at its start.
  const { readKubeconfig } = await import('../shard/kubeconfig-files.js');
  const { entry, ca, certificate, key } = await readKubeconfig({ path, context: undefined, allowInsecure: false });
  if (certificate === undefined || key === undefined)
    throw new CacheError(`${path}: the user of its current context has no client certificate, and a cache knows people by nothing else`);
  return { cache: new URL(entry.server).origin, ca, pair: { cert: certificate, key }, serverName: entry.serverName };
}

function leftOut(
  { certFile }: CacheOptions,
  { url, pair }: Readonly<{ url: string | undefined; pair: object | undefined }>,
): readonly string[] {
  const either = ', or --cache-kubeconfig';
  return [
    ...(url === undefined ? [`--${operatorOptions.cache.flag} must be given: ${operatorOptions.cache.accepts}${either}`] : []),
    ...(pair === undefined && certFile === undefined
      ? [`--${operatorOptions.certFile.flag} must be given: ${operatorOptions.certFile.accepts}${either}`]
      : []),
    ...(pair === undefined ? [`--${operatorOptions.keyFile.flag} must be given: ${operatorOptions.keyFile.accepts}${either}`] : []),
  ];
}
