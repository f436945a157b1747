/**
 * Tokens of service accounts, read as a kcp with `--service-account-lookup=false` reads them:
 * everything that a shard's key has signed is trusted. Only the claims decide, so a token is valid
 * until it expires, even if its service account was deleted.
 */
import { createHash, createPublicKey, type JsonWebKey, type JsonWebKeyInput, type KeyObject } from 'node:crypto';
import { membersOf, type Members } from '../domain/base/members.js';
import {
  assertWellFormed,
  audiencesOf,
  isOfShape,
  isText,
  isTime,
  claimedIssuer,
  keyIdOf,
  signingAlgorithms,
  textOf,
  timeOf,
  verifiedClaims,
} from './jwt.js';
import { credentialOf, InvalidToken, type TokenReader, type TokenUser } from './token-user.js';

/** Keyed by the id that kcp writes into the tokens that the key signs. */
export type ServiceAccountKeys = ReadonlyMap<string, KeyObject>;

type Parts = Readonly<{ keys: ServiceAccountKeys; issuers: readonly string[]; audiences: readonly string[]; wallMs: () => number }>;

/** The issuer of tokens in Secrets, which do not expire. */
const legacyIssuer = 'kubernetes/serviceaccount';
const clockSkewMs = 60_000;
const isReference = isOfShape({ name: isText, uid: isText });
const shape = {
  jti: isText,
  'kubernetes.io': isOfShape({
    clusterName: isText,
    namespace: isText,
    serviceaccount: isReference,
    pod: isReference,
    secret: isReference,
    node: isReference,
    warnafter: isTime,
  }),
};
/** The library refuses keys with fewer bits. */
const rsaBitsMin = 2_048;
/** The curves of ES256, ES384 and ES512. */
const curves: ReadonlySet<string> = new Set(['prime256v1', 'secp384r1', 'secp521r1']);
const pemBlock = /-----BEGIN ([A-Z0-9 ]+)-----[^-]*-----END \1-----/g;

export class ServiceAccountTokens implements TokenReader {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async read(token: string): Promise<TokenUser | undefined> {
    const { issuers, audiences, wallMs } = this.#parts;
    if (!isOfServiceAccount(token, issuers)) return undefined;
    const claims = await this.#claims(token);
    const isLegacy = claims['iss'] === legacyIssuer;
    assertWellFormed(claims, isLegacy ? {} : shape);
    const asked = audiencesOf(claims);
    if (asked.length > 0 && !asked.some((each) => audiences.includes(each))) throw new InvalidToken('the token is for another audience');
    assertNow(claims, wallMs());
    return userOf(isLegacy ? legacyClaims(claims) : claims);
  }

  /** A token names its key by an id. For a token without an id, every key is tried. */
  async #claims(token: string): Promise<Members> {
    const { keys } = this.#parts;
    const id = keyIdOf(token);
    const candidates = id === undefined ? [...keys.values()] : [keys.get(id) ?? []].flat();
    let refusal = new InvalidToken('the token is signed by a key that is not known here');
    for (const key of candidates) {
      try {
        return await verifiedClaims(token, { keyFor: () => key, algorithms: signingAlgorithms });
      } catch (error) {
        if (!(error instanceof InvalidToken)) throw error;
        refusal = error;
      }
    }
    throw refusal;
  }
}

/** Leaves these tokens to the shards, which also look up the service account. */
export function serviceAccountTokensOfShards(issuers: readonly string[]): TokenReader {
  return { read: async (token) => (isOfServiceAccount(token, issuers) ? 'backend' : undefined) };
}

function isOfServiceAccount(token: string, issuers: readonly string[]): boolean {
  const issuer = claimedIssuer(token);
  return issuer !== undefined && [legacyIssuer, ...issuers].includes(issuer);
}

/**
 * The public keys of a file. It has public keys, private keys or certificates as PEM, or the JSON
 * Web Key Set that an apiserver returns at `/openid/v1/jwks`. Keys that cannot sign tokens are
 * skipped.
 */
export function parseServiceAccountKeys(text: string): ServiceAccountKeys {
  const written = text.trimStart().startsWith('{') ? keySetOf(text) : [...text.matchAll(pemBlock)].map(([block]) => block);
  return new Map(
    written.flatMap((each) => {
      const key = publicKeyIn(each);
      return key === undefined ? [] : [[idOf(key), key] as const];
    }),
  );
}

function keySetOf(text: string): readonly JsonWebKeyInput[] {
  const keys = membersOf(jsonOf(text))['keys'];
  return Array.isArray(keys) ? keys.map((key: JsonWebKey) => ({ key, format: 'jwk' })) : [];
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function idOf(key: KeyObject): string {
  return createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('base64url');
}

function publicKeyIn(written: string | JsonWebKeyInput): KeyObject | undefined {
  try {
    const key = createPublicKey(written);
    const { modulusLength = 0, namedCurve = '' } = key.asymmetricKeyDetails ?? {};
    const canSign = key.asymmetricKeyType === 'rsa' ? modulusLength >= rsaBitsMin : curves.has(namedCurve);
    return canSign ? key : undefined;
  } catch {
    return undefined;
  }
}

function assertNow(claims: Members, nowMs: number): void {
  const expires = timeOf(claims, 'exp');
  if (expires !== undefined && nowMs - clockSkewMs > expires) throw new InvalidToken('the token has expired');
  for (const name of ['nbf', 'iat'] as const)
    if (nowMs + clockSkewMs < (timeOf(claims, name) ?? -Infinity)) throw new InvalidToken('the token is not valid yet');
}

/** Gives the claims of a token in a Secret the form that a bound token's claims have. */
function legacyClaims(claims: Members): Members {
  const of = (name: string): string => textOf(claims, `kubernetes.io/serviceaccount/${name}`);
  const [namespace, name, uid] = [of('namespace'), of('service-account.name'), of('service-account.uid')];
  of('secret.name');
  if (textOf(claims, 'sub') !== userName(namespace, name)) throw new InvalidToken('the claim sub names another service account');
  return { 'kubernetes.io': { clusterName: of('clusterName'), namespace, serviceaccount: { name, uid } } };
}

function userOf(claims: Members): TokenUser {
  const bound = membersOf(claims['kubernetes.io']);
  const [namespace, cluster] = [textOf(bound, 'namespace'), textOf(bound, 'clusterName')];
  const name = textOf(membersOf(bound['serviceaccount']), 'name');
  return {
    user: userName(namespace, name),
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`],
    extra: {
      ...placeOf(bound),
      ...credentialOf(claims['jti']),
      'authentication.kcp.io/cluster-name': [cluster],
      'authentication.kcp.io/scopes': [`cluster:${cluster}`],
    },
  };
}

/** The Pod and the Node to which a token is bound. */
function placeOf(bound: Members): TokenUser['extra'] {
  const [pod, node] = [membersOf(bound['pod']), membersOf(bound['node'])];
  const at = (key: string, value: string): TokenUser['extra'] => ({ [`authentication.kubernetes.io/${key}`]: [value] });
  return {
    ...(isName(pod['name']) && isName(pod['uid']) && { ...at('pod-name', pod['name']), ...at('pod-uid', pod['uid']) }),
    ...(isName(node['name']) && at('node-name', node['name'])),
    ...(isName(node['name']) && isName(node['uid']) && at('node-uid', node['uid'])),
  };
}

function userName(namespace: string, name: string): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
