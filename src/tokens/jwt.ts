/** JSON web tokens (RFC 7519) in their compact form, whoever issued them. */
import { compactVerify, decodeProtectedHeader, errors, type CompactVerifyGetKey, type CompactVerifyResult } from 'jose';
import { isObject, type Members } from '../domain/members.js';
import { InvalidToken } from './token-user.js';

/** Those that Kubernetes knows. */
export const signingAlgorithms = ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512'] as const;
export type SigningAlgorithm = (typeof signingAlgorithms)[number];

const base64url = /^[\w-]+$/;

/** Who is said to have issued the token, which nobody has verified. Undefined: it is no JWT. */
export function claimedIssuer(token: string): string | undefined {
  const [, payload = '', signature, ...more] = token.split('.');
  if (signature === undefined || more.length > 0 || !base64url.test(payload)) return undefined;
  const { iss } = claimsIn(Buffer.from(payload, 'base64url')) ?? {};
  return typeof iss === 'string' ? iss : undefined;
}

/** The id of the key that has signed the token, as it says; undefined where it says none. */
export function keyIdOf(token: string): string | undefined {
  try {
    const { kid } = decodeProtectedHeader(token);
    return kid === '' ? undefined : kid;
  } catch {
    return undefined;
  }
}

/** The claims of a token that a key of its issuer has signed. Throws InvalidToken. */
export async function verifiedClaims(
  token: string,
  { keyFor, algorithms }: Readonly<{ keyFor: CompactVerifyGetKey; algorithms: readonly SigningAlgorithm[] }>,
): Promise<Members> {
  const { payload } = await verify(token, { keyFor, algorithms });
  const claims = claimsIn(payload);
  if (claims === undefined) throw new InvalidToken('the claims of the token are no JSON object');
  return claims;
}

async function verify(token: string, { keyFor, algorithms }: Parameters<typeof verifiedClaims>[1]): Promise<CompactVerifyResult> {
  const options = { algorithms: [...algorithms] };
  try {
    return await compactVerify(token, keyFor, options);
  } catch (cause) {
    // It names no key, and several would do.
    if (cause instanceof errors.JWKSMultipleMatchingKeys)
      for await (const key of cause) {
        const verified = await compactVerify(token, key, options).catch(() => undefined);
        if (verified !== undefined) return verified;
      }
    if (cause instanceof InvalidToken) throw cause;
    // Its message quotes the token.
    const why = cause instanceof errors.JOSEError ? cause.code : 'its key cannot be used';
    throw new InvalidToken(`the signature of the token cannot be verified: ${why}`);
  }
}

function claimsIn(bytes: Uint8Array): Members | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(bytes).toString());
    return isObject(claims) ? claims : undefined;
  } catch {
    return undefined;
  }
}

/** What a claim must be, where it is there. For Go, null is as if it were not. */
type Check = (value: unknown) => boolean;
export type ClaimShape = Readonly<Record<string, Check>>;

export const isText: Check = (value) => typeof value === 'string';
const isTexts: Check = (value) => isText(value) || (Array.isArray(value) && value.every(isText));
/** Seconds since 1970, as far as a date of JavaScript goes. */
export const isTime: Check = (value) => typeof value === 'number' && Math.abs(value) <= 8.64e12;

/** Those of RFC 7519 that are read here. */
const registered: ClaimShape = { iss: isText, sub: isText, aud: isTexts, exp: isTime, nbf: isTime, iat: isTime };

export function isOfShape(shape: ClaimShape): Check {
  return (value) => isObject(value) && malformedIn(value, shape) === undefined;
}

/** `shape`: of claims beside the registered ones. Throws InvalidToken for a claim that is not as it must be, which would count as absent. */
export function assertWellFormed(claims: Members, shape: ClaimShape): void {
  const name = malformedIn(claims, { ...registered, ...shape });
  if (name !== undefined) throw new InvalidToken(`the claim ${name} is malformed`);
}

function malformedIn(members: Members, shape: ClaimShape): string | undefined {
  return Object.keys(shape).find((name) => (members[name] ?? null) !== null && !shape[name]!(members[name]));
}

/** Of claims that are well-formed: one audience or a list of them; none where there are none. */
export function audiencesOf({ aud }: Members): readonly string[] {
  return [(aud ?? []) as string | readonly string[]].flat();
}

/** Of claims that are well-formed, in milliseconds since 1970; undefined where it is absent. */
export function timeOf(claims: Members, name: 'exp' | 'nbf' | 'iat'): number | undefined {
  const value = (claims[name] ?? undefined) as number | undefined;
  return value === undefined ? undefined : Math.trunc(value) * 1_000;
}

/** A claim that must be there, as a text. Throws InvalidToken. */
export function textOf(claims: Members, name: string): string {
  const value = claims[name];
  if (typeof value !== 'string' || value === '') throw new InvalidToken(`the claim ${name} must be a text that is not empty`);
  return value;
}
