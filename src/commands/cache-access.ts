/**
 * The address of a cache and the client certificate for it, from the flags of a command or from a
 * kubeconfig.
 */
import { isIP } from 'node:net';
import { readAuthorities, readPair, type SecureContextPair } from '../certificates/pair-files.js';
import { operatorOptions } from '../config/options/command-options.js';
import type { CommandValues } from '../config/command-line/command-values.js';
import { environmentName, describeMissing } from '../config/options/option.js';
import { SettingsError } from '../config/settings-error.js';
import { CacheError } from '../domain/errors.js';

export type CacheOptions = CommandValues<typeof operatorOptions>;

/** `caSource`: the file that `ca` is from, for errors. */
export type CacheAccess = SecureContextPair &
  Readonly<{ cache: string; ca: string | undefined; caSource: string | undefined; serverName: string | undefined; timeoutMs: number }>;

/**
 * Throws SettingsError if an option is missing, or if options and a kubeconfig overlap, to prevent
 * the use of a wrong certificate. Throws CacheError if a file cannot be used.
 */
export async function openCacheAccess(options: CacheOptions): Promise<CacheAccess> {
  const { cacheKubeconfig, cache, caFile, certFile, keyFile, timeoutMs } = options;
  if (cacheKubeconfig !== undefined) {
    const twice = replaced.filter((name) => options[name] !== undefined).map((name) => nameOf(operatorOptions[name]));
    if (twice.length > 0)
      throw new SettingsError([
        `${nameOf(operatorOptions.cacheKubeconfig)} says how to reach the cache, and so ${verbOf(twice)} ${twice.join(', ')}: give one or the other`,
      ]);
    return { ...(await readAccess(cacheKubeconfig)), timeoutMs };
  }
  if (cache === undefined || certFile === undefined || keyFile === undefined) throw new SettingsError(leftOut(options));
  const ca = caFile === undefined ? undefined : readAuthorities(caFile, 'CA of the cache', operatorOptions.caFile.flag);
  return {
    cache,
    ...readPair({ certFile, keyFile }, { cert: operatorOptions.certFile.flag, key: operatorOptions.keyFile.flag }),
    ca,
    caSource: caFile,
    serverName: undefined,
    timeoutMs,
  };
}

/** The options that a kubeconfig replaces. */
const replaced = ['cache', 'caFile', 'certFile', 'keyFile'] as const;

function nameOf(option: Readonly<{ flag: string }>): string {
  return `--${option.flag} (${environmentName(option)})`;
}

function verbOf(names: readonly string[]): string {
  return names.length === 1 ? 'does' : 'do';
}

async function readAccess(path: string): Promise<Omit<CacheAccess, 'timeoutMs'>> {
  // Loaded only when it is used, because a server loads every command too.
  const { readKubeconfig } = await import('../shard/kubeconfig/kubeconfig-files.js');
  const { entry, ca, certificate, key } = readKubeconfig({ path, context: undefined, allowInsecure: false });
  if (certificate === undefined || key === undefined)
    throw new CacheError(`${path}: the user of its current context has no client certificate, and a cache accepts nothing else`);
  const { server, serverName } = entry;
  return {
    cache: new URL(server).origin,
    cert: certificate,
    key,
    ca,
    caSource: ca === undefined ? undefined : path,
    serverName: isIP(serverName ?? '') === 0 ? serverName : undefined,
  };
}

function leftOut(options: CacheOptions): readonly string[] {
  const needed = (['cache', 'certFile', 'keyFile'] as const).filter((name) => options[name] === undefined);
  return needed.map(
    (name) => `--${operatorOptions[name].flag} must be given: ${describeMissing(operatorOptions[name])}; or --cache-kubeconfig`,
  );
}
