/**
 * The JSON that `metadata` may have: Go's ObjectMeta must decode it. Errors have the words of Go's
 * decoder.
 *
 * The first byte of a value shows its type, so little is decoded. Go decodes every member,
 * including repeated ones. `null` is Go's zero value and is allowed anywhere except in labels and
 * annotations, where some readers would read '' and others null. Integers are checked by their
 * text, because Go does not accept 1.0. An unknown member may have any value, unless its name is
 * another spelling of a known one.
 * https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
 */
import { unreachable } from '../domain/errors.js';
import { isTimestamp } from '../domain/syntax/timestamp.js';
import { member, type Member, type Members, type ObjectText, valueText } from './object-text.js';
import { otherSpelling, type Spellings, spellingsOf } from './other-spelling.js';

type Shape = 'text' | 'truth' | 'integer' | 'time' | 'marks' | 'texts' | 'structs' | 'any';
type Shapes = Readonly<{ known: ReadonlyMap<string, Shape>; spellings: Spellings }>;

/**
 * Members of the metadata, or of a struct in it, that Kubernetes' types do not have and would drop.
 */
export type UnknownMembers = Readonly<{ path: string; members: Members; names: ReadonlySet<string> }>;

const ownerReference = shapes({
  apiVersion: 'text',
  kind: 'text',
  name: 'text',
  uid: 'text',
  controller: 'truth',
  blockOwnerDeletion: 'truth',
});
const managedField = shapes({
  manager: 'text',
  operation: 'text',
  apiVersion: 'text',
  time: 'time',
  fieldsType: 'text',
  fieldsV1: 'any',
  subresource: 'text',
});
const objectMeta = shapes({
  name: 'text',
  generateName: 'text',
  namespace: 'text',
  selfLink: 'text',
  uid: 'text',
  resourceVersion: 'text',
  generation: 'integer',
  creationTimestamp: 'time',
  deletionTimestamp: 'time',
  deletionGracePeriodSeconds: 'integer',
  labels: 'marks',
  annotations: 'marks',
  finalizers: 'texts',
  ownerReferences: 'structs',
  managedFields: 'structs',
});

const goTypes = {
  text: 'string',
  truth: 'bool',
  integer: 'int64',
  time: 'string',
  marks: 'map[string]string',
  texts: '[]',
  structs: '[]',
  any: 'any',
};
const shownCharactersMax = 64;
const integer = /^-?(?:0|[1-9]\d{0,18})$/;

export function metaMisfit(text: ObjectText): string | undefined {
  const { bytes, top, metadata } = text;
  const found = member(top, 'metadata');
  if (found === undefined || isNull(bytes, found.valueStart)) return undefined;
  if (typeAt(bytes, found.valueStart) !== 'object') return unmarshal(bytes, found.valueStart, 'ObjectMeta', 'struct');
  return membersMisfit(metadata, objectMeta, bytes, 'ObjectMeta') ?? marksMisfit(text) ?? structsMisfit(text);
}

export function unknownMembers({ metadata, structs }: ObjectText): readonly UnknownMembers[] {
  const found = metadata === undefined ? [] : unknownIn(metadata, objectMeta, 'metadata');
  const counts = new Map<string, number>();
  for (const { list, members } of structs) {
    const index = counts.get(list) ?? 0;
    counts.set(list, index + 1);
    if (members !== undefined) found.push(...unknownIn(members, shapesIn(list), `metadata.${list}[${index}]`));
  }
  return found;
}

export function cannotUnmarshal(type: string, path: string, goType: string): string {
  return `json: cannot unmarshal ${type} into Go struct field ${path} of type ${goType}`;
}

/** The type of the JSON value at that offset, in Go's words. */
export function typeAt(bytes: Uint8Array, at: number): 'object' | 'array' | 'string' | 'bool' | 'null' | 'number' {
  switch (bytes[at]) {
    case 0x7b:
      return 'object';
    case 0x5b:
      return 'array';
    case 0x22:
      return 'string';
    case 0x74:
    case 0x66:
      return 'bool';
    case 0x6e:
      return 'null';
    default:
      return 'number';
  }
}

function unknownIn(members: Members, { known }: Shapes, path: string): UnknownMembers[] {
  const names = members.list.filter(({ name }) => !known.has(name)).map(({ name }) => name);
  return names.length === 0 ? [] : [{ path, members, names: new Set(names) }];
}

function shapesIn(list: string): Shapes {
  return list === 'ownerReferences' ? ownerReference : managedField;
}

function membersMisfit(members: Members | undefined, { known, spellings }: Shapes, bytes: Uint8Array, path: string): string | undefined {
  for (const value of members?.list ?? []) {
    const shape = known.get(value.name);
    if (shape !== undefined && !fits(bytes, value, shape)) return misfit(bytes, value, shape, `${path}.${value.name}`);
    const meant = shape === undefined ? otherSpelling(value.name, spellings) : undefined;
    if (meant !== undefined) return `${JSON.stringify(value.name)} is another spelling of ${meant} in ${path}`;
  }
  return undefined;
}

function fits(bytes: Uint8Array, value: Member, shape: Shape): boolean {
  const type = typeAt(bytes, value.valueStart);
  if (type === 'null') return true;
  switch (shape) {
    case 'any':
      return true;
    case 'text':
      return type === 'string';
    case 'truth':
      return type === 'bool';
    case 'marks':
      return type === 'object';
    case 'structs':
      return type === 'array';
    case 'integer':
      return type === 'number' && isInt64(valueText(bytes, value));
    case 'time':
      return type === 'string' && isTimestamp(JSON.parse(valueText(bytes, value)) as string);
    case 'texts':
      return type === 'array' && strayIn(valueText(bytes, value)) === undefined;
    default:
      return unreachable(shape);
  }
}

function misfit(bytes: Uint8Array, value: Member, shape: Shape, path: string): string {
  const type = typeAt(bytes, value.valueStart);
  if (shape === 'time' && type === 'string')
    return `parsing time ${valueText(bytes, value).slice(0, shownCharactersMax)} as "2006-01-02T15:04:05Z07:00": cannot parse ${path}`;
  const stray = shape === 'texts' && type === 'array' ? strayIn(valueText(bytes, value)) : undefined;
  return stray === undefined ? cannotUnmarshal(type, path, goTypes[shape]) : cannotUnmarshal(stray, path, 'string');
}

function isInt64(literal: string): boolean {
  return integer.test(literal) && BigInt.asIntN(64, BigInt(literal)) === BigInt(literal);
}

/** The type of the first element that is neither a string nor null. */
function strayIn(array: string): string | undefined {
  const stray = (JSON.parse(array) as readonly unknown[]).find((each) => typeof each !== 'string' && each !== null);
  if (stray === undefined) return undefined;
  if (typeof stray === 'object') return Array.isArray(stray) ? 'array' : 'object';
  return typeof stray === 'number' ? 'number' : 'bool';
}

function marksMisfit({ bytes, labels, annotations }: ObjectText): string | undefined {
  for (const [name, marks] of [
    ['labels', labels],
    ['annotations', annotations],
  ] as const) {
    const wrong = marks?.list.find(({ valueStart }) => typeAt(bytes, valueStart) !== 'string');
    if (wrong !== undefined) return unmarshal(bytes, wrong.valueStart, `ObjectMeta.${name}`, 'string');
  }
  return undefined;
}

function structsMisfit({ bytes, structs }: ObjectText): string | undefined {
  for (const { list, start, members } of structs) {
    const path = `ObjectMeta.${list}`;
    if (members === undefined && !isNull(bytes, start)) return unmarshal(bytes, start, path, 'struct');
    const found = membersMisfit(members, shapesIn(list), bytes, path);
    if (found !== undefined) return found;
  }
  return undefined;
}

function unmarshal(bytes: Uint8Array, at: number, path: string, goType: string): string {
  return cannotUnmarshal(typeAt(bytes, at), path, goType);
}

function isNull(bytes: Uint8Array, at: number): boolean {
  return typeAt(bytes, at) === 'null';
}

function shapes(known: Readonly<Record<string, Shape>>): Shapes {
  return { known: new Map(Object.entries(known)), spellings: spellingsOf(Object.keys(known)) };
}
