/**
 * The ciphers that TLS may use, under the names that kcp's flag accepts: IANA's, which Go has too,
 * and two older ones that component-base keeps. OpenSSL has other names for suites of TLS 1.2, and
 * the same names for suites of TLS 1.3.
 *
 * CIPHER-1 TLS offers only suites that are named. A suite that cannot be offered is refused by
 *    name, because OpenSSL would silently skip it.
 * CIPHER-2 If no suite of TLS 1.3 is named, all three are offered, as in Go, where they cannot be
 *    chosen. If only suites of TLS 1.3 are named, no older version is accepted.
 */
import type { Option, Reading } from './option.js';
import { readStringSlice } from './string-slice.js';

const ofTls13: readonly string[] = ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'];

const openSslNames: ReadonlyMap<string, string> = new Map([
  ...ofTls13.map((name) => [name, name] as const),
  ['TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256', 'ECDHE-ECDSA-AES128-GCM-SHA256'],
  ['TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384', 'ECDHE-ECDSA-AES256-GCM-SHA384'],
  ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256', 'ECDHE-RSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ['TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA', 'ECDHE-ECDSA-AES128-SHA'],
  ['TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA', 'ECDHE-ECDSA-AES256-SHA'],
  ['TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA', 'ECDHE-RSA-AES128-SHA'],
  ['TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA', 'ECDHE-RSA-AES256-SHA'],
  ['TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256', 'ECDHE-ECDSA-AES128-SHA256'],
  ['TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256', 'ECDHE-RSA-AES128-SHA256'],
  ['TLS_RSA_WITH_AES_128_CBC_SHA', 'AES128-SHA'],
  ['TLS_RSA_WITH_AES_256_CBC_SHA', 'AES256-SHA'],
  ['TLS_RSA_WITH_AES_128_CBC_SHA256', 'AES128-SHA256'],
  ['TLS_RSA_WITH_AES_128_GCM_SHA256', 'AES128-GCM-SHA256'],
  ['TLS_RSA_WITH_AES_256_GCM_SHA384', 'AES256-GCM-SHA384'],
]);
/** Suites of Go that OpenSSL does not offer. */
const brokenCipher = /^TLS_\w+_WITH_(?:RC4_128|3DES_EDE_CBC)_SHA$/;
const shownMax = 100;
const acceptedValues = 'names of cipher suites as Go has them, separated by commas, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256';

/** The value is a list of OpenSSL's names; undefined: OpenSSL's default. */
export function cipherSuites(place: Pick<Option<unknown>, 'flag' | 'yaml' | 'help'>): Option<string | undefined> {
  return { ...place, default: '', placeholder: 'list', repeatable: true, acceptedValues, read };
}

function read(given: unknown): Reading<string | undefined> {
  const texts = typeof given === 'string' ? readStringSlice(given) : undefined;
  if (texts === undefined) return { kind: 'wrong', problem: `must be ${acceptedValues}` };
  const names = texts.filter((name) => name !== '');
  const problems = names.flatMap(problemOf);
  if (problems.length > 0) return { kind: 'wrong', problem: problems.join('; ') };
  if (names.length === 0) return { kind: 'read', value: undefined };
  const isChosen = names.some((name) => ofTls13.includes(name));
  const offered = [...(isChosen ? [] : ofTls13), ...names.map((name) => openSslNames.get(name)!)];
  return { kind: 'read', value: [...new Set(offered)].join(':') };
}

function problemOf(name: string): readonly string[] {
  if (openSslNames.has(name)) return [];
  const shown = JSON.stringify(name.slice(0, shownMax));
  return [brokenCipher.test(name) ? `${shown} is broken, and not offered here` : `there is no cipher suite ${shown}`];
}
