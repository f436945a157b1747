/**
 * The reviews of `kubectl auth can-i` and `kubectl auth whoami`. A review is answered and never
 * stored, so the catalogue does not have these types.
 * https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
 */
import type { ResourcePath } from './kube-request.js';
import type { Documented } from './openapi-schema.js';
import { reviewSchemas, type ReviewKind } from './review-schemas.js';

export type ReviewType = Documented & Readonly<{ kind: ReviewKind }>;

export const reviewTypes: readonly ReviewType[] = [
  reviewType('authorization.k8s.io', 'SelfSubjectAccessReview'),
  reviewType('authorization.k8s.io', 'SelfSubjectRulesReview'),
  reviewType('authentication.k8s.io', 'SelfSubjectReview'),
];

export function findReviewType({ group, resource }: Pick<ResourcePath, 'group' | 'resource'>): ReviewType | undefined {
  return reviewTypes.find((type) => type.group === group && type.resource === resource);
}

function reviewType(group: string, kind: ReviewKind): ReviewType {
  const singular = kind.toLowerCase();
  return {
    group,
    kind,
    singular,
    resource: `${singular}s`,
    shortNames: [],
    categories: [],
    namespaced: false,
    versions: [{ name: 'v1', columns: [] }],
    verbs: ['create'],
    schema: reviewSchemas[kind],
  };
}
