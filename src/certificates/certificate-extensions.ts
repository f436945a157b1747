/**
 * What stands in a certificate that Node does not show: its extensions, each with its bytes. A library that reads whole certificates would
 * be two hundred modules for two fields, at each start and for each connection.
 *
 *   Certificate ─ SEQUENCE ─ tbsCertificate ─ SEQUENCE ─ [3] ─ SEQUENCE ─ extension ─ SEQUENCE ─ id · critical, if it is · OCTET STRING
 *
 * Whoever asks has the certificate from OpenSSL, which has read it before. Each reader throws for what is not as RFC 5280, 4.2, has it.
 */
import type { X509Certificate } from 'node:crypto';

/** `id`: the content of the object identifier, in hexadecimal digits. */
export type CertificateExtension = Readonly<{ id: string; isCritical: boolean; value: Uint8Array }>;

export const extensionIds = { keyUsage: '551d0f', subjectAlternativeName: '551d11', basicConstraints: '551d13' } as const;

type Element = Readonly<{ tag: number; content: Uint8Array }>;

const tags = { boolean: 0x01, integer: 0x02, octetString: 0x04, identifier: 0x06, sequence: 0x30, extensions: 0xa3, uri: 0x86 } as const;
/** Of a tag or a length: more follows, in a form that no certificate needs for what is read here. */
const longTag = 0x1f;
const longLength = 0x80;
const lengthBytesMax = 4;
const pathLengthMax = 0x7f;

export function extensionsOf({ raw }: Pick<X509Certificate, 'raw'>): readonly CertificateExtension[] {
  const [toBeSigned] = membersOf(only(elementsOf(raw)));
  const wrapped = membersOf(toBeSigned).find(({ tag }) => tag === tags.extensions);
  return wrapped === undefined ? [] : membersOf(only(elementsOf(wrapped.content))).map(extensionOf);
}

/** The URIs of a subject alternative name, in which names of other kinds may stand as well. */
export function urisOf(subjectAlternativeName: Uint8Array): readonly string[] {
  const names = membersOf(only(elementsOf(subjectAlternativeName)));
  return names.filter(({ tag }) => tag === tags.uri).map(({ content }) => Buffer.from(content).toString('latin1'));
}

/** How many authorities may stand between one with these constraints and a leaf. */
export function pathLengthOf(basicConstraints: Uint8Array): number {
  const length = membersOf(only(elementsOf(basicConstraints))).find(({ tag }) => tag === tags.integer);
  if (length === undefined) return Infinity;
  const [value = Infinity, ...more] = length.content;
  if (more.length > 0 || value > pathLengthMax) throw new Error('the path length is no number of certificates');
  return value;
}

function extensionOf(element: Element): CertificateExtension {
  const members = membersOf(element);
  const id = members[0];
  const value = members.at(-1);
  if (id?.tag !== tags.identifier || value?.tag !== tags.octetString) throw new Error('an extension has no id or no value');
  const critical = members.find(({ tag }) => tag === tags.boolean);
  return {
    id: Buffer.from(id.content).toString('hex'),
    isCritical: critical !== undefined && critical.content[0] !== 0,
    value: value.content,
  };
}

function membersOf(element: Element | undefined): readonly Element[] {
  if (element?.tag !== tags.sequence) throw new Error('a sequence is missing');
  return elementsOf(element.content);
}

function only([element, ...more]: readonly Element[]): Element {
  if (element === undefined || more.length > 0) throw new Error('not one element, but none or several');
  return element;
}

/** The elements that follow one another: each a tag, the length of its content, and the content (X.690, DER). */
function elementsOf(bytes: Uint8Array): readonly Element[] {
  const elements: Element[] = [];
  let position = 0;
  while (position < bytes.length) {
    const tag = bytes[position]!;
    const { length, start } = lengthAt(bytes, position + 1);
    if ((tag & longTag) === longTag || start + length > bytes.length) throw new Error('an element has no end');
    elements.push({ tag, content: bytes.subarray(start, start + length) });
    position = start + length;
  }
  return elements;
}

function lengthAt(bytes: Uint8Array, position: number): { length: number; start: number } {
  const first = bytes[position] ?? longLength;
  if (first < longLength) return { length: first, start: position + 1 };
  const start = position + 1 + (first - longLength);
  const digits = bytes.subarray(position + 1, start);
  if (digits.length < 1 || digits.length > lengthBytesMax || digits.length !== first - longLength)
    throw new Error('a length cannot be read');
  return { length: digits.reduce((sum, digit) => sum * 256 + digit, 0), start };
}
