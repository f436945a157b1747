/**
 * The fault of a server's certificate. `explainCertificateFault` replaces Node's message, which
 * names neither the server nor the CA.
 */
export type CertificateFault = 'untrusted' | 'other-names' | 'expired' | 'not-yet-valid';

const faults: ReadonlyMap<unknown, CertificateFault> = new Map([
  ['CERT_SIGNATURE_FAILURE', 'untrusted'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'untrusted'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'untrusted'],
  ['UNABLE_TO_GET_ISSUER_CERT', 'untrusted'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'untrusted'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'untrusted'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'other-names'],
  ['CERT_HAS_EXPIRED', 'expired'],
  ['CERT_NOT_YET_VALID', 'not-yet-valid'],
]);

/** Decides by the code of Node's error. Undefined if the error is not about a certificate. */
export function certificateFaultOf(error: unknown): CertificateFault | undefined {
  return typeof error === 'object' && error !== null ? faults.get(Reflect.get(error, 'code')) : undefined;
}

/**
 * `trusted`: the end of the sentence "is not one that …", which says how the certificate was
 * checked. `wallMs`: the clock of this machine.
 */
export function explainCertificateFault(
  fault: CertificateFault,
  { server, trusted, wallMs }: Readonly<{ server: string; trusted: string; wallMs: number }>,
): string {
  const shown = `the certificate that ${server} shows`;
  const here = `by the clock of this machine, which is at ${new Date(wallMs).toISOString()}`;
  switch (fault) {
    case 'untrusted':
      return `${shown} is not one that ${trusted}`;
    case 'other-names':
      return `${shown} is for other names`;
    case 'expired':
      return `${shown} has expired, ${here}`;
    case 'not-yet-valid':
      return `${shown} is not valid yet, ${here}`;
  }
}
