/** JSON web tokens, signed by Node's crypto: a test must not trust the library by which the code verifies them. */
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto';

type Algorithm = 'RS256' | 'ES256' | 'PS256';

export type TestKey = Readonly<{ id: string; algorithm: Algorithm; privateKey: KeyObject; publicKey: KeyObject }>;

export function aKeyPair(id: string, algorithm: Algorithm = 'RS256'): TestKey {
  const pair =
    algorithm === 'ES256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { id, algorithm, ...pair };
}

/** `header`: beside or instead of what the key says. */
export function aJwt(claims: object, key: TestKey, header: Readonly<Record<string, unknown>> = {}): string {
  const input = [{ typ: 'JWT', alg: key.algorithm, kid: key.id, ...header }, claims].map(encoded).join('.');
  return `${input}.${signatureOf(input, key).toString('base64url')}`;
}

function signatureOf(input: string, { algorithm, privateKey: key }: TestKey): Buffer {
  if (algorithm === 'ES256') return sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' });
  // RFC 7518, 3.5: a salt as long as the hash.
  return sign('sha256', Buffer.from(input), algorithm === 'PS256' ? { key, padding: 6, saltLength: 32 } : key);
}

export function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
