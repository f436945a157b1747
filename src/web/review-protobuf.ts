/**
 * A review in protobuf, which is all that kubectl sends of the groups it was built with: no refusal makes it send JSON. Own code, because
 * five messages of texts are no reason for a library.
 *
 * The numbers are those of generated.proto in k8s.io/api and k8s.io/apimachinery. Fields that are not known are passed over.
 * https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding
 */
import { badRequest, Refused } from '../domain/errors.js';

const magic = Buffer.from('k8s\0');
const accessAttributes = {
  resourceAttributes: { namespace: 1, verb: 2, group: 3, version: 4, resource: 5, subresource: 6, name: 7 },
  nonResourceAttributes: { path: 1, verb: 2 },
} as const;

/** The members of a message that are texts or messages themselves, by number; of several with one number the last. */
type Fields = ReadonlyMap<number, Buffer>;

/** The review as its JSON would be parsed. Throws Refused(400). */
export function decodeReview(bytes: Uint8Array): unknown {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!whole.subarray(0, magic.length).equals(magic)) throw malformed();
  const envelope = fieldsOf(whole.subarray(magic.length));
  const typeMeta = messageAt(envelope, 1);
  const spec = messageAt(messageAt(envelope, 2), 2);
  const { apiVersion, kind } = textsOf(typeMeta, { apiVersion: 1, kind: 2 });
  return { apiVersion, kind, spec: kind === 'SelfSubjectAccessReview' ? accessOf(spec) : textsOf(spec, { namespace: 1 }) };
}

function accessOf(spec: Fields): unknown {
  const { resourceAttributes, nonResourceAttributes } = accessAttributes;
  return {
    ...(spec.has(1) && { resourceAttributes: textsOf(messageAt(spec, 1), resourceAttributes) }),
    ...(spec.has(2) && { nonResourceAttributes: textsOf(messageAt(spec, 2), nonResourceAttributes) }),
  };
}

/** Go writes empty texts too: they are left out, as JSON does. */
function textsOf<Name extends string>(fields: Fields, numbers: Readonly<Record<Name, number>>): Partial<Record<Name, string>> {
  const texts: Partial<Record<Name, string>> = {};
  for (const name in numbers) {
    const text = fields.get(numbers[name])?.toString() ?? '';
    if (text !== '') texts[name] = text;
  }
  return texts;
}

function messageAt(fields: Fields, number: number): Fields {
  return fieldsOf(fields.get(number) ?? Buffer.alloc(0));
}

function fieldsOf(message: Buffer): Fields {
  const fields = new Map<number, Buffer>();
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
    const number = Math.floor(tag / 8);
    switch (tag % 8) {
      case 0:
        varint();
        break;
      case 1:
        take(8);
        break;
      case 2:
        fields.set(number, take(varint()));
        break;
      case 5:
        take(4);
        break;
      default:
        throw malformed();
    }
  }
  return fields;
}

function malformed(): Refused {
  return new Refused(badRequest('the body of the request is no object in protobuf'));
}
