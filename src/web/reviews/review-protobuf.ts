/**
 * Decodes a review in protobuf. For its built-in types, kubectl sends protobuf only, and no refusal
 * makes it send JSON. A library would be too much for five messages of texts.
 *
 * The field numbers are from generated.proto in k8s.io/api and k8s.io/apimachinery. Unknown fields
 * are ignored. As in Go, the parts of a message are merged, and the last of several texts counts. A
 * known field of another wire type is an error.
 * https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding
 */
import { isUtf8 } from 'node:buffer';
import { entryOf } from '../../domain/base/entry-of.js';
import { badRequest, Refused } from '../../domain/errors.js';

const magic = Buffer.from('k8s\0');
const accessAttributes = {
  resourceAttributes: { namespace: 1, verb: 2, group: 3, version: 4, resource: 5, subresource: 6, name: 7 },
  nonResourceAttributes: { path: 1, verb: 2 },
} as const;

/**
 * How many fields each message has. Their numbers begin with 1; each field is a text or a message.
 */
const fieldCounts = { envelope: 4, typeMeta: 2, review: 3, accessSpec: 2, resourceAttributes: 9, nonResourceAttributes: 2, rulesSpec: 1 };
const numberMax = 2 ** 29 - 1;

/** The parts of a message by field number, in the order in which they were sent. */
type Fields = ReadonlyMap<number, readonly Buffer[]>;

/** Returns the review as if parsed from JSON. Throws Refused(400). */
export function decodeReview(bytes: Uint8Array): unknown {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!whole.subarray(0, magic.length).equals(magic)) throw malformed();
  const envelope = fieldsOf([whole.subarray(magic.length)], fieldCounts.envelope);
  const typeMeta = fieldsOf(envelope.get(1), fieldCounts.typeMeta);
  // The envelope holds the review as bytes, not as a message, so only the last of several counts.
  const review = fieldsOf(envelope.get(2)?.slice(-1), fieldCounts.review);
  const { apiVersion, kind } = textsOf(typeMeta, { apiVersion: 1, kind: 2 });
  return { apiVersion, kind, spec: specOf(kind, review.get(2)) };
}

/** A SelfSubjectReview has no spec: its field 2 is the status. */
function specOf(kind: string | undefined, spec: readonly Buffer[] | undefined): unknown {
  if (kind === 'SelfSubjectAccessReview') return accessOf(spec);
  return kind === 'SelfSubjectRulesReview' ? textsOf(fieldsOf(spec, fieldCounts.rulesSpec), { namespace: 1 }) : undefined;
}

function accessOf(spec: readonly Buffer[] | undefined): unknown {
  const { resourceAttributes, nonResourceAttributes } = accessAttributes;
  const fields = fieldsOf(spec, fieldCounts.accessSpec);
  const [resource, path] = [fields.get(1), fields.get(2)];
  return {
    ...(resource && { resourceAttributes: textsOf(fieldsOf(resource, fieldCounts.resourceAttributes), resourceAttributes) }),
    ...(path && { nonResourceAttributes: textsOf(fieldsOf(path, fieldCounts.nonResourceAttributes), nonResourceAttributes) }),
  };
}

/** Go also writes empty texts. They are left out, as in JSON. */
function textsOf<Name extends string>(fields: Fields, numbers: Readonly<Record<Name, number>>): Partial<Record<Name, string>> {
  const texts: Partial<Record<Name, string>> = {};
  for (const name in numbers) {
    const bytes = fields.get(numbers[name])?.at(-1) ?? Buffer.alloc(0);
    if (!isUtf8(bytes)) throw malformed();
    if (bytes.length > 0) texts[name] = bytes.toString();
  }
  return texts;
}

function fieldsOf(parts: readonly Buffer[] = [], count: number): Fields {
  const fields = new Map<number, Buffer[]>();
  const found = (number: number, value: Buffer): void => void entryOf(fields, number, (): Buffer[] => []).push(value);
  for (const part of parts) readFields(part, count, found);
  return fields;
}

function readFields(message: Buffer, count: number, found: (number: number, value: Buffer) => void): void {
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; scale <= 2 ** 63; scale *= 128) {
      const byte = message[at++];
      if (byte === undefined) break;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
    throw malformed();
  };
  const take = (length: number): Buffer => {
    if (length > message.length - at) throw malformed();
    return message.subarray(at, (at += length));
  };
  while (at < message.length) {
    const tag = varint();
    const [number, wireType] = [Math.floor(tag / 8), tag % 8];
    if (number < 1 || number > numberMax || (number <= count && wireType !== 2)) throw malformed();
    switch (wireType) {
      case 0:
        varint();
        break;
      case 1:
        take(8);
        break;
      case 2:
        found(number, take(varint()));
        break;
      case 5:
        take(4);
        break;
      default:
        throw malformed();
    }
  }
}

function malformed(): Refused {
  return new Refused(badRequest('the body of the request is not an object in protobuf'));
}
