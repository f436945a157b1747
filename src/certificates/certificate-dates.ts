/** What the dates of a certificate say against it. Whoever is shown it says no more than that it vouches for nobody. */
import { X509Certificate } from 'node:crypto';

/** As the end of "the certificate …"; undefined where its dates allow it to be used. `pem`: the first certificate in it counts. */
export function faultOfDates(pem: string, wallMs: number): string | undefined {
  const { validFrom, validTo } = new X509Certificate(pem);
  if (Date.parse(validFrom) > wallMs) return `is not valid before ${new Date(validFrom).toISOString()}`;
  if (Date.parse(validTo) <= wallMs) return `has expired at ${new Date(validTo).toISOString()}`;
  return undefined;
}
