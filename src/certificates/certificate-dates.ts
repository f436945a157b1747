/**
 * Explains why the dates of a certificate forbid its use. A peer that rejects the certificate does
 * not name the dates.
 */
import { X509Certificate } from 'node:crypto';

/**
 * The end of a sentence that begins "the certificate …"; undefined if its dates allow it to be
 * used. `pem`: its first certificate counts.
 */
export function faultOfDates(pem: string, wallMs: number): string | undefined {
  const { validFrom, validTo } = new X509Certificate(pem);
  if (Date.parse(validFrom) > wallMs) return `is not valid before ${new Date(validFrom).toISOString()}`;
  if (Date.parse(validTo) <= wallMs) return `has expired at ${new Date(validTo).toISOString()}`;
  return undefined;
}
