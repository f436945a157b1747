/**
 * The logical cluster to which the token of a service account belongs. Pure. In-cluster clients
 * cannot put it into their paths, so kcp's proxy and this one add it. The token is not verified
 * here. The shard verifies it, and only then trusts the claim.
 */
import { isObject, membersOf } from '../domain/members.js';
import { parseClusterName, type ClusterName } from '../domain/cluster.js';

const scheme = 'Bearer ';
const payloadCharactersMax = 16 * 1024;

/** `authorization`: the Authorization header. Undefined for any other token. */
export function clusterOfToken(authorization: string | undefined): ClusterName | undefined {
  if (authorization?.startsWith(scheme) !== true) return undefined;
  const [, payload = '', signature, ...more] = authorization.slice(scheme.length).split('.');
  if (signature === undefined || more.length > 0 || payload.length > payloadCharactersMax) return undefined;
  const claims = claimsIn(payload);
  const bound = membersOf(claims['kubernetes.io'])['clusterName'];
  const name = typeof bound === 'string' ? bound : claims['kubernetes.io/serviceaccount/clusterName'];
  return typeof name === 'string' ? parseClusterName(name) : undefined;
}

function claimsIn(payload: string): Readonly<Record<string, unknown>> {
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString());
    return isObject(claims) ? claims : {};
  } catch {
    return {};
  }
}
