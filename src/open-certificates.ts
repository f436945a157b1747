/** Opens every certificate that this server uses, reads them again while it runs, and reports when each expires. */
import { CertificateExpiry, certificatesIn, type UsedCertificates } from './certificates/certificate-expiry.js';
import { ClientAuthorities } from './certificates/client-authorities.js';
import { readText } from './certificates/pair-files.js';
import { ServingCertificate } from './certificates/serving-certificate.js';
import type { Settings } from './config/settings.js';
import type { Log } from './diagnostics/log.js';
import type { Clock } from './domain/ports.js';
import type { Reloadable } from './domain/reloaded.js';
import type { Listener } from './http/listener.js';

export type OpenCertificates = Readonly<{
  serving: ServingCertificate;
  /** Undefined: everybody is anonymous. */
  authorities: ClientAuthorities | undefined;
  expiry: CertificateExpiry;
  /** What is read again, by its name in the log. */
  watch: (listener: Pick<Listener, 'show' | 'trust'>) => Readonly<Record<string, Reloadable | undefined>>;
}>;

/** Throws CacheError when one of them cannot be used. */
export async function openCertificates(settings: Settings, parts: Readonly<{ clock: Clock; log: Log }>): Promise<OpenCertificates> {
  const { clientCaFile, parentCertFile, tlsFilesPollMs: filesPollMs } = settings;
  const authorities = clientCaFile === undefined ? undefined : ClientAuthorities.open(parts, clientCaFile);
  const serving = await ServingCertificate.open(parts, {
    certFile: settings.tlsCertFile,
    keyFile: settings.tlsPrivateKeyFile,
    directory: settings.certificateDirectory,
    bindAddress: settings.bindAddress,
  });
  const used: readonly (() => UsedCertificates)[] = [
    () => certificatesIn('serving', serving.file, serving.pair.cert),
    () => (authorities === undefined ? [] : certificatesIn('client-ca', authorities.file, authorities.pem)),
    // Read for each connection to the parent, so also for this.
    () =>
      parentCertFile === undefined ? [] : certificatesIn('parent', parentCertFile, readText(parentCertFile, 'certificate for the parent')),
  ];
  const expiry = new CertificateExpiry(parts, used);
  return {
    serving,
    authorities,
    expiry,
    watch: (listener) => {
      expiry.watch(filesPollMs);
      return {
        'serving-certificate': serving.watch(parts, { filesPollMs }, (pair) => listener.show(pair)),
        'client-ca': authorities?.watch({ filesPollMs }, () => void listener.trust(authorities)),
      };
    },
  };
}
