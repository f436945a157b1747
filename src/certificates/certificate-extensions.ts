/**
 * What stands in a certificate that Node does not show: its extensions, each with its bytes. asn1js reads the bytes, and this file knows where
 * things stand in a certificate. @peculiar/x509, which knows that as well, is 190 modules, at each start and for two fields.
 *
 *   Certificate ─ SEQUENCE ─ tbsCertificate ─ SEQUENCE ─ [3] ─ SEQUENCE ─ extension ─ SEQUENCE ─ id · critical, if it is · OCTET STRING
 *
 * Whoever asks has the certificate from OpenSSL, which has read it before. Each reader throws for what is not as RFC 5280, 4.2, has it.
 */
import type { X509Certificate } from 'node:crypto';
import {
  type BaseBlock,
  Boolean as Asn1Boolean,
  Constructed,
  fromBER,
  Integer,
  ObjectIdentifier,
  OctetString,
  Primitive,
  Sequence,
} from 'asn1js';

/** `id`: an object identifier such as 2.5.29.15. */
export type CertificateExtension = Readonly<{ id: string; isCritical: boolean; value: Uint8Array }>;

export const extensionIds = { keyUsage: '2.5.29.15', subjectAlternativeName: '2.5.29.17', basicConstraints: '2.5.29.19' } as const;

const contextClass = 3;
const extensionsTag = 3;
const uriTag = 6;
const pathLengthMax = 0x7f;

export function extensionsOf({ raw }: Pick<X509Certificate, 'raw'>): readonly CertificateExtension[] {
  const [toBeSigned] = membersOf(read(raw));
  const wrapped = membersOf(toBeSigned).find((element) => element instanceof Constructed && isContext(element, extensionsTag));
  if (wrapped === undefined) return [];
  const [extensions] = (wrapped as Constructed).valueBlock.value;
  return membersOf(extensions).map(extensionOf);
}

/** The URIs of a subject alternative name, in which names of other kinds may stand as well. */
export function urisOf(subjectAlternativeName: Uint8Array): readonly string[] {
  return membersOf(read(subjectAlternativeName))
    .filter((name): name is Primitive => name instanceof Primitive && isContext(name, uriTag))
    .map((name) => Buffer.from(name.valueBlock.valueHexView).toString('latin1'));
}

/** How many authorities may stand between one with these constraints and a leaf. */
export function pathLengthOf(basicConstraints: Uint8Array): number {
  const length = membersOf(read(basicConstraints)).find((element) => element instanceof Integer);
  if (length === undefined) return Infinity;
  const [value = Infinity, ...more] = length.valueBlock.valueHexView;
  if (more.length > 0 || value > pathLengthMax) throw new Error('the path length is no number of certificates');
  return value;
}

function extensionOf(element: BaseBlock): CertificateExtension {
  const members = membersOf(element);
  const [id, critical] = members;
  const value = members.at(-1);
  if (!(id instanceof ObjectIdentifier) || !(value instanceof OctetString)) throw new Error('an extension has no id or no value');
  return {
    id: id.valueBlock.toString(),
    isCritical: critical instanceof Asn1Boolean && critical.valueBlock.value,
    value: value.valueBlock.valueHexView,
  };
}

function isContext({ idBlock: { tagClass, tagNumber } }: BaseBlock, tag: number): boolean {
  return tagClass === contextClass && tagNumber === tag;
}

function membersOf(element: BaseBlock | undefined): readonly BaseBlock[] {
  if (!(element instanceof Sequence)) throw new Error('a sequence is missing');
  return element.valueBlock.value;
}

/** One element, and nothing behind it. */
function read(bytes: Uint8Array): BaseBlock {
  const { result, offset } = fromBER(Uint8Array.from(bytes));
  if (offset !== bytes.length) throw new Error(`the bytes are not one element: ${result.error}`);
  return result;
}
