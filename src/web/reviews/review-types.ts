/**
 * The reviews of `kubectl auth can-i` and `kubectl auth whoami`. A review is answered and never
 * stored, so the catalogue does not have these types.
 * https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
 */
import type { ResourcePath } from '../kube/kube-request.js';
import type { Documented, KindSchema } from '../discovery/openapi-schema.js';

type ReviewKind = 'SelfSubjectAccessReview' | 'SelfSubjectRulesReview' | 'SelfSubjectReview';

type Field = Readonly<Record<string, unknown>>;

const verb = text('The verb: get, list, watch, create, update, patch, delete or deletecollection; * for all of them.');
const notStored = { metadata: object('Ignored: a review is answered and not stored.', {}) };

/** `kubectl explain` shows these fields, which `reviews.ts` reads and writes. */
const reviewSchemas: Readonly<Record<ReviewKind, KindSchema>> = {
  SelfSubjectAccessReview: {
    description: 'Asks whether the caller may do something at the shard and the logical cluster of the URL.',
    required: ['spec'],
    fields: {
      ...notStored,
      spec: object('What the caller would do: exactly one of the two fields.', {
        resourceAttributes: object('A request for objects. A field that is left out stands for all values.', {
          verb,
          group: text('The API group.'),
          version: text('The version of the group. It decides nothing.'),
          resource: text('The plural name of the resource.'),
          subresource: text('A part of the resource. It decides nothing.'),
          namespace: text('The namespace. It decides nothing.'),
          name: text('The name of an object. It decides nothing.'),
        }),
        nonResourceAttributes: object('A request for a path that is not a resource, such as /metrics.', {
          path: text('The path.'),
          verb: text('The method in lower case.'),
        }),
      }),
      status: object('The answer.', {
        allowed: flag('Whether the caller may do it.'),
        reason: text('Why the caller may not do it.'),
      }),
    },
  },
  SelfSubjectRulesReview: {
    description: 'Asks for all that the caller may do at the shard and the logical cluster of the URL.',
    fields: {
      ...notStored,
      spec: object('Ignored: what a caller may do does not depend on a namespace.', { namespace: text('A namespace.') }),
      status: object('The answer.', {
        resourceRules: list('What the caller may do with objects.', {
          verbs: texts('The verbs.'),
          apiGroups: texts('The API groups; * for all of them.'),
          resources: texts('The resources; * for all of them.'),
        }),
        nonResourceRules: list('What the caller may ask of paths that are not resources.', {
          verbs: texts('The methods in lower case.'),
          nonResourceURLs: texts('The paths; * for all of them.'),
        }),
        incomplete: flag('Whether something is missing. Nothing ever is.'),
      }),
    },
  },
  SelfSubjectReview: {
    description: 'Asks who the caller is.',
    fields: {
      ...notStored,
      status: object('The answer.', {
        userInfo: object('What the certificate says.', {
          username: text('Its common name.'),
          groups: texts('Its organizations.'),
          extra: {
            type: 'object',
            description: 'Under certificate-uri, the shard, the cache or the reader that it speaks for.',
            additionalProperties: { type: 'array', items: { type: 'string' } },
          },
        }),
      }),
    },
  },
};

function object(description: string, properties: Readonly<Record<string, Field>>): Field {
  return { type: 'object', description, properties };
}

function list(description: string, properties: Readonly<Record<string, Field>>): Field {
  return { type: 'array', description, items: { type: 'object', properties } };
}

function text(description: string): Field {
  return { type: 'string', description };
}

function texts(description: string): Field {
  return { type: 'array', description, items: { type: 'string' } };
}

function flag(description: string): Field {
  return { type: 'boolean', description };
}

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
