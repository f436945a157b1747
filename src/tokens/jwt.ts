/** JSON web tokens (RFC 7519) in compact form, from any issuer. */
import { compactVerify, decodeProtectedHeader, errors, type CompactVerifyGetKey, type CompactVerifyResult } from 'jose';
import { isObject, type Members } from '../domain/base/members.js';
import { InvalidToken } from './token-user.js';

/** The algorithms that Kubernetes supports. */
export const signingAlgorithms = ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512'] as const;
export type SigningAlgorithm = (typeof signingAlgorithms)[number];

const base64url = /^[\w-]+$/;

/** The issuer that the token claims, not verified. Undefined: the text is no JWT. */
export function claimedIssuer(token: string): string | undefined {
  const [, payload = '', signature, ...more] = token.split('.');
  if (signature === undefined || more.length > 0 || !base64url.test(payload)) return undefined;
  const { iss } = claimsIn(Buffer.from(payload, 'base64url')) ?? {};
  return typeof iss === 'string' ? iss : undefined;
}

/** The id of the signing key, as the token claims; undefined if it names none. */
export function keyIdOf(token: string): string | undefined {
  try {
    const { kid } = decodeProtectedHeader(token);
    return kid === '' ? undefined : kid;
  } catch {
    return undefined;
  }
}

/**
 * The claims of a token after its signature is verified with a key of `keyFor`. Throws
 * InvalidToken.
 */
export async function verifiedClaims(
  token: string,
  { keyFor, algorithms }: Readonly<{ keyFor: CompactVerifyGetKey; algorithms: readonly SigningAlgorithm[] }>,
): Promise<Members> {
  const { payload } = await verify(token, { keyFor, algorithms });
  const claims = claimsIn(payload);
  if (claims === undefined) throw new InvalidToken('the claims of the token are not a JSON object');
  return claims;
}

async function verify(token: string, { keyFor, algorithms }: Parameters<typeof verifiedClaims>[1]): Promise<CompactVerifyResult> {
  const options = { algorithms: [...algorithms] };
  try {
    return await compactVerify(token, keyFor, options);
  } catch (cause) {
    // The token names no key and several keys fit, so try each.
    if (cause instanceof errors.JWKSMultipleMatchingKeys)
      for await (const key of cause) {
        const verified = await compactVerify(token, key, options).catch(() => undefined);
        if (verified !== undefined) return verified;
      }
    if (cause instanceof InvalidToken) throw cause;
    // Leave out the library's message, because it quotes the token.
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

/** Checks the value of a claim that is present. null counts as absent, as in Go. */
type Check = (value: unknown) => boolean;
export type ClaimShape = Readonly<Record<string, Check>>;

export const isText: Check = (value) => typeof value === 'string';
const isTexts: Check = (value) => isText(value) || (Array.isArray(value) && value.every(isText));
/** Seconds since 1970, within the range of a JavaScript Date. */
export const isTime: Check = (value) => typeof value === 'number' && Math.abs(value) <= 8.64e12;

/** The claims of RFC 7519 that are read here. */
const registered: ClaimShape = { iss: isText, sub: isText, aud: isTexts, exp: isTime, nbf: isTime, iat: isTime };

export function isOfShape(shape: ClaimShape): Check {
  return (value) => isObject(value) && malformedIn(value, shape) === undefined;
}

/**
 * `shape`: the claims to check beside the registered ones. Throws InvalidToken for a malformed
 * claim, which would otherwise count as absent.
 */
export function assertWellFormed(claims: Members, shape: ClaimShape): void {
  const name = malformedIn(claims, { ...registered, ...shape });
  if (name !== undefined) throw new InvalidToken(`the claim ${name} is malformed`);
}

function malformedIn(members: Members, shape: ClaimShape): string | undefined {
  return Object.keys(shape).find((name) => (members[name] ?? null) !== null && !shape[name]!(members[name]));
}

/**
 * Needs well-formed claims. The claim `aud` is one audience or a list; without it the result is
 * empty.
 */
export function audiencesOf({ aud }: Members): readonly string[] {
  return [(aud ?? []) as string | readonly string[]].flat();
}

/** Needs well-formed claims. Milliseconds since 1970; undefined if the claim is absent. */
export function timeOf(claims: Members, name: 'exp' | 'nbf' | 'iat'): number | undefined {
  const value = (claims[name] ?? undefined) as number | undefined;
  return value === undefined ? undefined : Math.trunc(value) * 1_000;
}

/** Throws InvalidToken if the claim is missing, empty or no text. */
export function textOf(claims: Members, name: string): string {
  const value = claims[name];
  if (typeof value !== 'string' || value === '') throw new InvalidToken(`the claim ${name} must be a string that is not empty`);
  return value;
}
