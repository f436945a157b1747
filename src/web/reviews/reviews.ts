/**
 * POST of a review: what the caller may do, or who the caller is. Every answer comes from the code
 * that decides about real requests: `authorize.ts`, and the checks of a write's shard and cluster.
 */
import { formatSpokenFor, type Caller } from '../../domain/caller.js';
import { unreachable, type Refusal } from '../../domain/errors.js';
import { attempt, mustParse } from '../../domain/parsed.js';
import type { HeavyWork } from '../../domain/ports.js';
import { formatApiVersion, formatGroupResource } from '../../domain/resource.js';
import type { ShardName } from '../../domain/shard.js';
import type { Exchange } from '../../http/exchange.js';
import { negotiate } from '../formats/accept.js';
import { encoded } from '../formats/answer.js';
import { authorize } from '../authorize.js';
import { writtenCluster, type Answer } from '../kube/call.js';
import type { RequestedCluster } from '../kube/kube-path.js';
import { isRead, methodOf, verbs, wildcardWrite } from '../kube/kube-request.js';
import { encode } from '../formats/parts.js';
import { readAccess, readReviewSpec, type Access, type PathAttributes, type ResourceAttributes } from './review-body.js';
import { findReviewType, reviewTypes, type ReviewType } from './review-types.js';

type Asker = Readonly<{ caller: Caller; shard: ShardName | '*'; cluster: RequestedCluster }>;

const pathVerbs = ['get', 'post', 'put', 'patch', 'delete'];

export async function review(
  type: ReviewType,
  place: Pick<Asker, 'shard' | 'cluster'>,
  { exchange, heavy }: Readonly<{ exchange: Exchange; heavy: HeavyWork }>,
): Promise<Answer> {
  const { encoding } = mustParse(negotiate(exchange.request.headers.accept, 'one'));
  const sent = await readReviewSpec(type, exchange, heavy);
  const { spec, status } = answerOf(type, sent, { ...place, caller: exchange.caller });
  const object = { kind: type.kind, apiVersion: formatApiVersion(type.group, 'v1'), metadata: {}, ...(spec && { spec }), status };
  return await encoded(201, [encode(JSON.stringify(object))], { encoding, heavy });
}

function answerOf(
  type: ReviewType,
  sent: Readonly<Record<string, unknown>>,
  asker: Asker,
): Readonly<{ spec?: object | undefined; status: object }> {
  switch (type.kind) {
    case 'SelfSubjectAccessReview': {
      const spec = readAccess(type, sent);
      const refusal = refusalOf(asker, spec);
      return { spec, status: refusal === undefined ? { allowed: true } : { allowed: false, reason: refusal.message } };
    }
    case 'SelfSubjectRulesReview':
      return { spec: {}, status: rulesOf(asker) };
    case 'SelfSubjectReview':
      return { status: { userInfo: userOf(asker.caller) } };
    default:
      return unreachable(type.kind);
  }
}

/** Why the caller may not; undefined if it may. */
function refusalOf(asker: Asker, access: Access): Refusal | undefined {
  return access.resourceAttributes === undefined
    ? refusalOfPath(asker, access.nonResourceAttributes)
    : refusalOfResource(asker, access.resourceAttributes);
}

function refusalOfPath({ caller, shard }: Asker, { path = '', verb = '' }: PathAttributes): Refusal | undefined {
  return authorize(caller, { path, method: verb.toUpperCase(), shard, resource: undefined, verb: undefined });
}

/** An unknown verb is checked as an unknown method. */
function refusalOfResource(asker: Asker, attributes: ResourceAttributes): Refusal | undefined {
  const { caller, shard } = asker;
  const { group = '', version = '', resource = '', namespace, name, subresource } = attributes;
  const path = formatGroupResource({ group, resource });
  const verb = verbs.find((each) => each === attributes.verb);
  if (verb === undefined) {
    const method = (attributes.verb ?? '').toLowerCase();
    return authorize(caller, { path, method, shard, resource: undefined, verb }) ?? refusalOfWrite(asker);
  }
  const asked = { group, version, resource, identity: undefined, namespace, name, subresource, forcedWatch: false };
  const isStored = !isRead(verb) && findReviewType(asked) === undefined;
  return (
    authorize(caller, { path, method: methodOf(verb), shard, resource: asked, verb }) ?? (isStored ? refusalOfWrite(asker) : undefined)
  );
}

function refusalOfWrite({ shard, cluster }: Asker): Refusal | undefined {
  if (shard === '*') return wildcardWrite('shard');
  const written = attempt(() => writtenCluster(cluster));
  return written.kind === 'refused' ? written.refusal : undefined;
}

function rulesOf(asker: Asker): object {
  const may = (access: Access): boolean => refusalOf(asker, access) === undefined;
  const everything = { group: '*', resource: '*' };
  const allowed = ['*', ...verbs].filter((verb) => may({ resourceAttributes: { ...everything, verb } }));
  const reviews = reviewTypes.filter(({ group, resource }) => may({ resourceAttributes: { group, resource, verb: 'create' } }));
  const ofPaths = pathVerbs.filter((verb) => may({ nonResourceAttributes: { path: '*', verb } }));
  return {
    resourceRules: [
      ...(allowed.length > 0 ? [{ verbs: allowed, apiGroups: ['*'], resources: ['*'] }] : []),
      ...reviews.map(({ group, resource }) => ({ verbs: ['create'], apiGroups: [group], resources: [resource] })),
    ],
    nonResourceRules: ofPaths.length > 0 ? [{ verbs: ofPaths, nonResourceURLs: ['*'] }] : [],
    incomplete: false,
  };
}

function userOf({ user, groups, speaksFor }: Caller): object {
  const uri = speaksFor && formatSpokenFor(speaksFor);
  return { username: user, groups, ...(uri !== undefined && { extra: { 'certificate-uri': [uri] } }) };
}
