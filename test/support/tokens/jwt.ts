/**
 * JSON web tokens, signed by Node's crypto: a test must not trust the library with which the code
 * verifies them.
 */
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto';

type Algorithm = 'RS256' | 'ES256';

export type TestKey = Readonly<{ id: string; algorithm: Algorithm; privateKey: KeyObject; publicKey: KeyObject }>;

/** Making an RSA key takes a tenth of a second. */
export function aKeyPair(id: string, algorithm: Algorithm = 'ES256'): TestKey {
  const pair =
    algorithm === 'ES256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { id, algorithm, ...pair };
}

/** `header`: members beside or instead of those of the key. */
export function aJwt(claims: object, key: TestKey, header: Readonly<Record<string, unknown>> = {}): string {
  const input = [{ typ: 'JWT', alg: key.algorithm, kid: key.id, ...header }, claims].map(encoded).join('.');
  return `${input}.${signatureOf(input, key).toString('base64url')}`;
}

function signatureOf(input: string, { algorithm, privateKey: key }: TestKey): Buffer {
  return sign('sha256', Buffer.from(input), algorithm === 'ES256' ? { key, dsaEncoding: 'ieee-p1363' } : key);
}

export function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
