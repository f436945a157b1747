/**
 * Reads the spec of a review from JSON, YAML or protobuf, without its selectors, which change no
 * answer.
 */
import { badRequest, invalid, Refused } from '../../domain/errors.js';
import { jsonValue } from '../../json/json-value.js';
import { isObject, type Members } from '../../domain/base/members.js';
import type { HeavyWork } from '../../domain/ports.js';
import { formatApiVersion } from '../../domain/resource.js';
import type { Exchange } from '../../http/exchange.js';
import { mediaType, readBody, readJsonBody } from '../formats/body.js';
import { decodeReview } from './review-protobuf.js';
import type { ReviewType } from './review-types.js';

/** The serving thread parses a review, so it must be short. */
const reviewBytesMax = 16 * 1024;
const protobuf = 'application/vnd.kubernetes.protobuf';

const resourceNames = ['namespace', 'verb', 'group', 'version', 'resource', 'subresource', 'name'] as const;
const pathNames = ['path', 'verb'] as const;

type Texts<Names extends readonly string[]> = Readonly<Partial<Record<Names[number], string>>>;

export type ResourceAttributes = Texts<typeof resourceNames>;
export type PathAttributes = Texts<typeof pathNames>;

export type Access =
  | Readonly<{ resourceAttributes: ResourceAttributes; nonResourceAttributes?: undefined }>
  | Readonly<{ nonResourceAttributes: PathAttributes; resourceAttributes?: undefined }>;

/**
 * The `spec` as it was sent. Throws Refused(400) for a repeated member, even without strict
 * fieldValidation, because Go would merge both members.
 */
export async function readReviewSpec(type: ReviewType, exchange: Exchange, heavy: HeavyWork): Promise<Members> {
  const review =
    mediaType(exchange.request) === protobuf
      ? decodeReview(await readBody(exchange, reviewBytesMax))
      : parseJson(await readJsonBody(exchange, reviewBytesMax, heavy, 'refused'));
  const { apiVersion, kind, spec } = isObject(review) ? review : {};
  if (kind !== type.kind || apiVersion !== formatApiVersion(type.group, 'v1'))
    throw new Refused(badRequest(`the object provided is unrecognized (must be of type ${type.kind})`));
  if (type.kind === 'SelfSubjectReview') return {};
  const members = objectAt('spec', spec) ?? {};
  if (type.kind === 'SelfSubjectRulesReview') textsOf('spec', members, ['namespace']);
  return members;
}

/** Undefined if absent or null. Throws Refused(400) if the value is no object. */
function objectAt(field: string, value: unknown): Members | undefined {
  if (value === undefined || value === null) return undefined;
  if (isObject(value)) return value;
  throw new Refused(badRequest(`${field} must be an object`));
}

/** Throws Refused(422) unless exactly one of the two is given. */
export function readAccess(type: ReviewType, spec: Members): Access {
  const resourceAttributes = objectAt('spec.resourceAttributes', spec['resourceAttributes']);
  const nonResourceAttributes = objectAt('spec.nonResourceAttributes', spec['nonResourceAttributes']);
  if (resourceAttributes !== undefined && nonResourceAttributes !== undefined)
    throw misfit(
      type,
      'nonResourceAttributes',
      'FieldValueInvalid',
      'Invalid value: cannot be specified in combination with resourceAttributes',
    );
  if (resourceAttributes !== undefined)
    return { resourceAttributes: textsOf('spec.resourceAttributes', resourceAttributes, resourceNames) };
  if (nonResourceAttributes !== undefined)
    return { nonResourceAttributes: textsOf('spec.nonResourceAttributes', nonResourceAttributes, pathNames) };
  const message = 'Required value: exactly one of nonResourceAttributes or resourceAttributes must be specified';
  throw misfit(type, 'resourceAttributes', 'FieldValueRequired', message);
}

function parseJson(bytes: Uint8Array): unknown {
  const value = jsonValue(Buffer.from(bytes).toString());
  if (value === undefined) throw new Refused(badRequest('the body of the request is not JSON'));
  return value;
}

function textsOf<Name extends string>(field: string, value: Members, names: readonly Name[]): Partial<Record<Name, string>> {
  const texts: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const text = Object.hasOwn(value, name) ? (value[name] ?? '') : '';
    if (typeof text !== 'string') throw new Refused(badRequest(`${field}.${name} must be a string`));
    if (text !== '') texts[name] = text;
  }
  return texts;
}

function misfit({ group, kind }: ReviewType, member: string, reason: string, message: string): Refused {
  return new Refused(invalid({ group, kind, name: '' }, [{ reason, message, field: `spec.${member}` }]));
}
