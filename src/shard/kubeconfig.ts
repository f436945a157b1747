/**
 * How to reach a shard, from a kubeconfig: what its files hold, and what its exec plugin issues. Both are asked for before every
 * request, so that nothing that is renewed needs a new start.
 */
import type { UsedCertificates } from '../certificates/certificate-expiry.js';
import type { Log } from '../diagnostics/log.js';
import { ExecPlugin, type ExecPluginParts } from './exec-plugin.js';
import type { KubeconfigOptions } from './kubeconfig-entry.js';
import { KubeconfigFiles, type KubeconfigContent } from './kubeconfig-files.js';
import type { Credentials, KubeAccess } from '../kube/kube-access.js';

/** Also gives the certificates that the files hold and the shard is shown, to watch when they expire. A plugin renews its own. */
export type KubeconfigAccess = KubeAccess & Readonly<{ certificates: () => UsedCertificates }>;

/** Throws CacheError with what is wrong and where. */
export async function loadKubeconfig(
  options: KubeconfigOptions,
  { log, ...parts }: ExecPluginParts & Readonly<{ log: Log }>,
): Promise<KubeconfigAccess> {
  const files = KubeconfigFiles.open({ log }, options);
  const { server, serverName, insecure } = files.content.entry;
  const plugins = new CurrentPlugin(parts);
  return {
    source: options.path,
    caSource: () => files.content.entry.ca?.name,
    server,
    serverName,
    insecure,
    credentials: async (signal) => {
      const content = files.look();
      const plugin = plugins.of(content);
      if (plugin === undefined) return credentialsIn(content);
      const issued = await plugin.credential(content.ca, signal);
      const { expiresMs: _, ...credential } = issued;
      return { ...credentialsIn(content), ...credential, drop: () => plugin.drop(issued) };
    },
    certificates: () => files.certificates(),
  };
}

/** The plugin of the present entry, with what it keeps; another one once the entry has changed. */
class CurrentPlugin {
  readonly #parts: ExecPluginParts;
  #entry = '';
  #plugin: ExecPlugin | undefined;

  constructor(parts: ExecPluginParts) {
    this.#parts = parts;
  }

  of({ entry: { exec } }: KubeconfigContent): ExecPlugin | undefined {
    const entry = exec === undefined ? '' : JSON.stringify(exec);
    if (entry !== this.#entry) this.#plugin = exec && new ExecPlugin(this.#parts, exec);
    this.#entry = entry;
    return this.#plugin;
  }
}

function credentialsIn({ ca, certificate, key, authorization }: KubeconfigContent): Credentials {
  return {
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { certificate }),
    ...(key !== undefined && { key }),
    ...(authorization !== undefined && { authorization }),
  };
}
