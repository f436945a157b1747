/**
 * The user that the claims of an OpenID Connect token name, by the rules of kube-apiserver. Pure.
 */
import { isObject, membersOf, type Members } from '../domain/base/members.js';
import { assertWellFormed, audiencesOf, isText, textOf, timeOf, type SigningAlgorithm } from './jwt.js';
import { credentialOf, InvalidToken, type TokenUser } from './token-user.js';

export type ClaimMapping = Readonly<{ claim: string; prefix: string }>;

export type IssuerRules = Readonly<{
  url: string;
  /** A token must be for one of these audiences. */
  audiences: readonly string[];
  username: ClaimMapping;
  groups: ClaimMapping | undefined;
  /** Claims that must have these values. */
  required: ReadonlyMap<string, string>;
  algorithms: readonly SigningAlgorithm[];
}>;

const isMapOf = (isValue: (value: unknown) => boolean) => (value: unknown) => isObject(value) && Object.values(value).every(isValue);
const shape = { nonce: isText, at_hash: isText, _claim_names: isMapOf(isText), _claim_sources: isMapOf(isObject) };
/** How far the issuer's clock may be ahead of this one. */
const notBeforeSkewMs = 60_000;

/** `nowMs`: since 1970. Throws InvalidToken. */
export function userOfClaims(claims: Members, rules: IssuerRules, nowMs: number): TokenUser {
  assertValid(claims, rules, nowMs);
  const { claim, prefix } = rules.username;
  const user = textOf(claims, claim);
  // An unverified mail address names nobody, because anyone may claim it.
  const { email_verified: isVerified = true } = claims;
  if (claim === 'email' && isVerified !== true) throw new InvalidToken('the mail address is not verified');
  return { user: `${prefix}${user}`, groups: groupsOf(claims, rules.groups), extra: credentialOf(claims['jti']) };
}

function assertValid(claims: Members, { url, audiences, required }: IssuerRules, nowMs: number): void {
  assertWellFormed(claims, shape);
  if (claims['iss'] !== url) throw new InvalidToken('the token is of another issuer');
  if (!audiencesOf(claims).some((each) => audiences.includes(each))) throw new InvalidToken('the token is for another audience');
  if ((timeOf(claims, 'exp') ?? 0) < nowMs) throw new InvalidToken('the token has expired');
  if (nowMs + notBeforeSkewMs < (timeOf(claims, 'nbf') ?? -Infinity)) throw new InvalidToken('the token is not valid yet');
  for (const [name, value] of required)
    if (claims[name] !== value) throw new InvalidToken(`the claim ${name} does not have the required value`);
}

/**
 * A single text is one group. A token whose groups must be fetched elsewhere (`_claim_names`) is
 * refused, because its groups would be missing.
 */
function groupsOf(claims: Members, mapping: ClaimMapping | undefined): readonly string[] {
  if (mapping === undefined) return [];
  const { claim, prefix } = mapping;
  const value = claims[claim] ?? undefined;
  if (value === undefined && membersOf(claims['_claim_names'])[claim] !== undefined)
    throw new InvalidToken('the token does not contain its groups but refers to another place (_claim_names), which is not supported');
  const groups = value === undefined ? [] : [value].flat();
  if (!groups.every((each) => typeof each === 'string')) throw new InvalidToken(`the claim ${claim} must be a string or a list of strings`);
  return groups.map((group) => `${prefix}${group}`);
}
