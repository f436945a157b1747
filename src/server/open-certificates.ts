/**
 * Opens every certificate that the server uses, reloads them while it runs, and reports when each
 * expires.
 */
import { callerOf, type TrustedKinds } from '../certificates/caller-from-certificate.js';
import { CertificateExpiry, parsedOnce } from '../certificates/certificate-expiry.js';
import { ClientAuthorities } from '../certificates/client-authorities.js';
import { readText } from '../certificates/pair-files.js';
import { ServingCertificate } from '../certificates/serving-certificate.js';
import { proxyOptions } from '../config/options/command-options.js';
import { options } from '../config/options/options.js';
import type { Settings } from '../config/settings.js';
import type { Log } from '../diagnostics/log.js';
import type { Clock } from '../domain/ports.js';
import type { Reloadable } from '../domain/base/reloaded.js';
import type { TrustedAuthorities } from '../http/connection.js';
import type { Listener, ListenerParts } from '../http/listener.js';

export type OpenCertificates = Readonly<{
  serving: ServingCertificate;
  /** Undefined: every caller is anonymous. */
  authorities: TrustedAuthorities | undefined;
  callerOf: ListenerParts['callerOf'];
  expiry: CertificateExpiry;
  /** Starts to poll the files. The keys of the result are the names that the log uses. */
  watch: (listener: Pick<Listener, 'show' | 'trust'>) => Readonly<Record<string, Reloadable | undefined>>;
}>;

/**
 * The CA of authenticating proxies (RequestHeader), and the names that their certificates may have.
 */
export type ProxyAuthorities = Readonly<{ requestheaderCaFile: string | undefined; requestheaderNames: readonly string[] }>;

/** Throws CacheError when a certificate file cannot be used. */
export async function openCertificates(
  settings: Settings,
  parts: Readonly<{ clock: Clock; log: Log }>,
  { requestheaderCaFile, requestheaderNames: names }: ProxyAuthorities = { requestheaderCaFile: undefined, requestheaderNames: [] },
): Promise<OpenCertificates> {
  const { clientCaFile, parentCertFile, tlsFilesPollMs: filesPollMs } = settings;
  const clients = clientCaFile === undefined ? undefined : ClientAuthorities.open(parts, clientCaFile, options.clientCaFile.flag);
  const proxies =
    requestheaderCaFile === undefined
      ? undefined
      : ClientAuthorities.open(parts, requestheaderCaFile, proxyOptions.requestheaderCaFile.flag);
  const kinds: TrustedKinds | undefined = proxies === undefined ? undefined : { clients, proxies, names };
  const serving = await ServingCertificate.open(parts, {
    certFile: settings.tlsCertFile,
    keyFile: settings.tlsPrivateKeyFile,
    directory: settings.certificateDirectory,
    bindAddress: settings.bindAddress,
    flags: { cert: options.tlsCertFile.flag, key: options.tlsPrivateKeyFile.flag },
  });
  const used = [
    parsedOnce(() => ({ use: 'serving', file: serving.file, pem: serving.pair.cert })),
    parsedOnce(() => clients && { use: 'client-ca', file: clients.file, pem: clients.pem }),
    parsedOnce(() => proxies && { use: 'requestheader-ca', file: proxies.file, pem: proxies.pem }),
    // The link reads this file for each connection to the parent, so the expiry check rereads it.
    parsedOnce(() => (parentCertFile === undefined ? undefined : parentFile(parentCertFile))),
  ];
  const expiry = new CertificateExpiry(parts, used);
  const authorities = bothOf(clients, proxies);
  return {
    serving,
    authorities,
    callerOf: (socket) => callerOf(socket, kinds),
    expiry,
    watch: (listener) => {
      expiry.watch(filesPollMs);
      const trust = (): void => void (authorities !== undefined && listener.trust(authorities));
      return {
        'serving-certificate': serving.watch(parts, { filesPollMs }, (pair) => listener.show(pair)),
        'client-ca': clients?.watch({ filesPollMs }, trust),
        'requestheader-ca': proxies?.watch({ filesPollMs, name: 'requestheader-ca' }, trust),
      };
    },
  };
}

function parentFile(file: string): Readonly<{ use: 'parent'; file: string; pem: string }> {
  return { use: 'parent', file, pem: readText(file, 'certificate for the parent') };
}

/**
 * The authorities that the TLS handshake accepts. Afterwards `callerOf` decides which of these two
 * CAs vouches for a certificate.
 */
function bothOf(one: TrustedAuthorities | undefined, other: TrustedAuthorities | undefined): TrustedAuthorities | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    get pem(): string {
      return `${one.pem}\n${other.pem}`;
    },
    vouchesFor: (certificate) => one.vouchesFor(certificate) || other.vouchesFor(certificate),
  };
}
