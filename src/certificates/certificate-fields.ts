/**
 * Reads the parts of a certificate that Node does not expose: each value of its subject, and its
 * extensions as bytes. asn1js parses the bytes, and this file knows the layout. @peculiar/x509 does
 * this too, but loads 190 modules at each start.
 *
 *   Certificate ─ SEQUENCE ─ tbsCertificate ─ SEQUENCE
 *     ├─ [0] version, optional ─ serial number ─ signature ─ issuer ─ validity ─ subject
 *     └─ [3] ─ SEQUENCE ─ extension ─ SEQUENCE ─ id ─ critical, optional ─ OCTET STRING
 *
 * OpenSSL has already parsed every certificate that arrives here. Each function throws if the part
 * that it reads does not have the form of RFC 5280. Attributes and extensions are named by object
 * identifiers, such as 2.5.29.15.
 */
import type { X509Certificate } from 'node:crypto';
import {
  type BaseBlock,
  BmpString,
  Boolean as Asn1Boolean,
  Constructed,
  fromBER,
  IA5String,
  Integer,
  NumericString,
  ObjectIdentifier,
  OctetString,
  Primitive,
  PrintableString,
  Sequence,
  Set as Asn1Set,
  TeletexString,
  UniversalString,
  Utf8String,
  VisibleString,
} from 'asn1js';

export type Fields = readonly BaseBlock[];

export type CertificateExtension = Readonly<{ id: string; isCritical: boolean; value: Uint8Array }>;

export const attributeIds = { commonName: '2.5.4.3', organization: '2.5.4.10' } as const;
export const extensionIds = { keyUsage: '2.5.29.15', subjectAlternativeName: '2.5.29.17', basicConstraints: '2.5.29.19' } as const;

const contextClass = 3;
const versionTag = 0;
const extensionsTag = 3;
const uriTag = 6;
/** The index of the subject in a certificate without a version. */
const subjectPosition = 4;
const negativeBit = 0x80;
const unicodeBytes = 4;
/** OpenSSL reads all of these as Latin-1. */
const latin1Strings = [PrintableString, IA5String, NumericString, VisibleString, TeletexString];
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function fieldsOf({ raw }: Pick<X509Certificate, 'raw'>): Fields {
  const [toBeSigned] = membersOf(read(raw));
  return membersOf(toBeSigned);
}

/**
 * Every value of one attribute of the subject, in order. Values of other attributes are not
 * checked.
 */
export function subjectOf(fields: Fields, id: string): readonly string[] {
  const isVersioned = fields[0] !== undefined && isContext(fields[0], versionTag);
  const subject = fields[subjectPosition + (isVersioned ? 1 : 0)];
  const attributes = membersOf(subject).flatMap((names) => membersOf(names, Asn1Set).map((attribute) => membersOf(attribute)));
  return attributes
    .filter(([type]) => type instanceof ObjectIdentifier && type.valueBlock.toString() === id)
    .map(([, value]) => textOf(value));
}

export function extensionsOf(fields: Fields): readonly CertificateExtension[] {
  const wrapped = fields.find((element) => element instanceof Constructed && isContext(element, extensionsTag));
  if (wrapped === undefined) return [];
  const [extensions] = (wrapped as Constructed).valueBlock.value;
  return membersOf(extensions).map(extensionOf);
}

/** The URIs of a subject alternative name, which may also have names of other kinds. */
export function urisOf(subjectAlternativeName: Uint8Array): readonly string[] {
  return membersOf(read(subjectAlternativeName))
    .filter((name) => isContext(name, uriTag))
    .map((name) => {
      if (!(name instanceof Primitive)) throw new Error('a URI is put together from parts');
      return Buffer.from(name.valueBlock.valueHexView).toString('latin1');
    });
}

/** How many CAs a chain may have between a CA with these constraints and a leaf. */
export function pathLengthOf(basicConstraints: Uint8Array): number {
  const length = membersOf(read(basicConstraints)).find((element) => element instanceof Integer);
  if (length === undefined) return Infinity;
  const digits = length.valueBlock.valueHexView;
  if (digits.length === 0 || (digits[0]! & negativeBit) !== 0) throw new Error('the path length is no number of certificates');
  return digits.reduce((sum, digit) => sum * 256 + digit, 0);
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

/**
 * Decode UTF-8 strictly: asn1js replaces invalid bytes, which would give a name that nobody signed.
 */
function textOf(value: BaseBlock | undefined): string {
  if (value === undefined || value.idBlock.isConstructed)
    throw new Error('an attribute has no value, or one that is put together from parts');
  if (value instanceof Utf8String) return utf8.decode(value.valueBlock.valueHexView);
  if (value instanceof BmpString) return Buffer.from(value.valueBlock.valueHexView).swap16().toString('utf16le');
  if (value instanceof UniversalString) return textOfCodePoints(Buffer.from(value.valueBlock.valueHexView));
  const latin1 = latin1Strings.find((kind) => value instanceof kind);
  if (latin1 === undefined) throw new Error('an attribute is no text');
  return Buffer.from((value as PrintableString).valueBlock.valueHexView).toString('latin1');
}

function textOfCodePoints(bytes: Buffer): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += unicodeBytes) text += String.fromCodePoint(bytes.readUInt32BE(at));
  return text;
}

function isContext({ idBlock: { tagClass, tagNumber } }: BaseBlock, tag: number): boolean {
  return tagClass === contextClass && tagNumber === tag;
}

function membersOf(element: BaseBlock | undefined, kind: typeof Sequence | typeof Asn1Set = Sequence): readonly BaseBlock[] {
  if (!(element instanceof kind)) throw new Error('a sequence or a set is missing');
  return element.valueBlock.value;
}

/** Parses exactly one element. Throws if more bytes follow. */
function read(bytes: Uint8Array): BaseBlock {
  const { result, offset } = fromBER(Uint8Array.from(bytes));
  if (offset !== bytes.length) throw new Error(`the bytes are not one element: ${result.error}`);
  return result;
}
