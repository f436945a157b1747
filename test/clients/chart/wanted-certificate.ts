/** What cert-manager Certificates of the rendered chart ask for. */
import type { Subject } from '../../support/test-authority.js';
import type { Rendered } from './helm.js';

export type WantedCertificate = Readonly<{
  /** The secret that cert-manager writes the certificate into. */
  secret: string;
  serves: boolean;
  issuer: string;
  hosts: readonly string[];
  uris: readonly string[];
}> &
  Pick<Subject, 'user' | 'groups'>;

type CertificateSpec = Readonly<{
  secretName: string;
  /** Missing for a certificate from a public issuer. */
  commonName?: string;
  subject?: Readonly<{ organizations: readonly string[] }>;
  uris?: readonly string[];
  dnsNames?: readonly string[];
  ipAddresses?: readonly string[];
  usages: readonly string[];
  isCA?: boolean;
  issuerRef: Readonly<{ name: string }>;
}>;

/** All Certificates except those of authorities. */
export function certificatesOf(documents: readonly Rendered[]): readonly WantedCertificate[] {
  return documents
    .filter(({ kind }) => kind === 'Certificate')
    .map(({ spec }) => spec as CertificateSpec)
    .filter(({ isCA = false }) => !isCA)
    .map(({ secretName, commonName, subject, uris = [], dnsNames = [], ipAddresses = [], usages, issuerRef }) => ({
      secret: secretName,
      issuer: issuerRef.name,
      user: commonName ?? '',
      groups: subject?.organizations ?? [],
      uris,
      hosts: [...dnsNames, ...ipAddresses],
      serves: usages.includes('server auth'),
    }));
}
