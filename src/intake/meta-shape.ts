/**
 * What JSON may stand where in `metadata`: what Go's ObjectMeta decodes, with the errors of Go's decoder.
 *
 * A replica that does not decode would break every typed informer that lists it, so wrong types are refused at the endpoint (400,
 * as upstream). `null` is Go's zero value and may stand anywhere but as a label or annotation: there it would become ''
 * for some readers and stay null for others. Whole numbers are checked by their text (object-meta.ts): 1.0 is none in Go.
 * https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
 */
import { unreachable } from '../domain/errors.js';
import { isObject } from '../domain/members.js';
import { parseTimestamp } from './timestamp.js';

type Shape =
  | Readonly<{ kind: 'text' | 'truth' | 'time' | 'texts' }>
  | Readonly<{ kind: 'list'; each: Shape }>
  | Readonly<{ kind: 'struct'; members: readonly (readonly [string, Shape])[] }>;

const text: Shape = { kind: 'text' };
const truth: Shape = { kind: 'truth' };
const time: Shape = { kind: 'time' };
const texts: Shape = { kind: 'texts' };

const ownerReference = struct({ apiVersion: text, kind: text, name: text, uid: text, controller: truth, blockOwnerDeletion: truth });
const managedField = struct({ manager: text, operation: text, apiVersion: text, time, fieldsType: text, subresource: text });

const objectMeta = struct({
  name: text,
  generateName: text,
  namespace: text,
  selfLink: text,
  uid: text,
  resourceVersion: text,
  creationTimestamp: time,
  deletionTimestamp: time,
  labels: texts,
  annotations: texts,
  finalizers: list(text),
  ownerReferences: list(ownerReference),
  managedFields: list(managedField),
});

/** What is wrong with a decoded `metadata`; undefined when all is well. */
export function metaMisfit(metadata: unknown): string | undefined {
  return misfit(metadata, objectMeta, 'ObjectMeta');
}

export function cannotUnmarshal(value: unknown, path: string, goType: string): string {
  return `json: cannot unmarshal ${jsonType(value)} into Go struct field ${path} of type ${goType}`;
}

function misfit(value: unknown, shape: Shape, path: string): string | undefined {
  if (value === null) return undefined;
  switch (shape.kind) {
    case 'text':
      return typeof value === 'string' ? undefined : cannotUnmarshal(value, path, 'string');
    case 'truth':
      return typeof value === 'boolean' ? undefined : cannotUnmarshal(value, path, 'bool');
    case 'time':
      return timeMisfit(value, path);
    case 'texts':
      return textsMisfit(value, path);
    case 'list':
      return listMisfit(value, shape.each, path);
    case 'struct':
      return structMisfit(value, shape.members, path);
    default:
      return unreachable(shape);
  }
}

function timeMisfit(value: unknown, path: string): string | undefined {
  if (typeof value !== 'string') return cannotUnmarshal(value, path, 'string');
  if (parseTimestamp(value) !== undefined) return undefined;
  return `parsing time ${JSON.stringify(value)} as "2006-01-02T15:04:05Z07:00": cannot parse ${path}`;
}

function textsMisfit(value: unknown, path: string): string | undefined {
  if (!isObject(value)) return cannotUnmarshal(value, path, 'map[string]string');
  // By their names: listing the members of an object of thousands takes longer than looking them up.
  const wrong = Object.keys(value).find((name) => typeof value[name] !== 'string');
  return wrong === undefined ? undefined : cannotUnmarshal(value[wrong], path, 'string');
}

function listMisfit(value: unknown, each: Shape, path: string): string | undefined {
  if (!Array.isArray(value)) return cannotUnmarshal(value, path, '[]');
  for (const element of value) {
    const found = misfit(element, each, path);
    if (found !== undefined) return found;
  }
  return undefined;
}

function structMisfit(value: unknown, members: readonly (readonly [string, Shape])[], path: string): string | undefined {
  if (!isObject(value)) return cannotUnmarshal(value, path, 'struct');
  for (const [name, shape] of members) {
    if (!Object.hasOwn(value, name)) continue;
    const found = misfit(value[name], shape, `${path}.${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function struct(members: Readonly<Record<string, Shape>>): Shape {
  return { kind: 'struct', members: Object.entries(members) };
}

function list(each: Shape): Shape {
  return { kind: 'list', each };
}

function jsonType(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}
