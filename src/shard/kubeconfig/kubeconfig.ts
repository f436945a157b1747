/**
 * Access to a shard by a kubeconfig: the contents of its files, and the credentials of its exec
 * plugin. The client requests both before every request, so that renewed credentials need no
 * restart.
 */
import type { UsedCertificates } from '../../certificates/certificate-expiry.js';
import type { Log } from '../../diagnostics/log.js';
import { ExecPlugin, type ExecPluginParts } from './exec-plugin.js';
import type { KubeconfigOptions } from './kubeconfig-entry.js';
import { KubeconfigFiles, type KubeconfigContent } from './kubeconfig-files.js';
import type { Credentials, KubeAccess } from '../../kube/kube-access.js';

/**
 * `certificates`: the certificates in files that the agent presents to the shard, to monitor their
 * expiry. A plugin renews the certificates that it issues.
 */
export type KubeconfigAccess = KubeAccess & Readonly<{ certificates: () => UsedCertificates }>;

/** Throws CacheError with what is wrong and where. */
export async function loadKubeconfig(
  options: KubeconfigOptions,
  { log, ...parts }: ExecPluginParts & Readonly<{ log: Log }>,
): Promise<KubeconfigAccess> {
  const files = KubeconfigFiles.open({ log }, options);
  const { server, serverName, insecure } = files.content.entry;
  const pluginOf = currentPlugin(parts);
  return {
    source: options.path,
    caSource: () => files.content.entry.ca?.name,
    server,
    serverName,
    insecure,
    credentials: async (signal) => {
      const content = files.reload();
      const plugin = pluginOf(content);
      if (plugin === undefined) return credentialsIn(content);
      const issued = await plugin.credential(content.ca, signal);
      const { expiresMs: _, ...credential } = issued;
      return { ...credentialsIn(content), ...credential, drop: () => plugin.drop(issued) };
    },
    certificates: () => files.certificates(),
  };
}

/**
 * The plugin of the kubeconfig's present entry, with its kept credentials. A changed entry gets a
 * new plugin.
 */
function currentPlugin(parts: ExecPluginParts): (content: KubeconfigContent) => ExecPlugin | undefined {
  let present = '';
  let plugin: ExecPlugin | undefined;
  return ({ entry: { exec } }) => {
    const entry = exec === undefined ? '' : JSON.stringify(exec);
    if (entry !== present) plugin = exec && new ExecPlugin(parts, exec);
    present = entry;
    return plugin;
  };
}

function credentialsIn({ ca, certificate, key, authorization }: KubeconfigContent): Credentials {
  return {
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { certificate }),
    ...(key !== undefined && { key }),
    ...(authorization !== undefined && { authorization }),
  };
}
