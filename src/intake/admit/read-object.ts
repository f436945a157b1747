/**
 * Reads the bytes of a write as an object of the type that its URL names, or throws a refusal. Only
 * kind, apiVersion and metadata are decoded.
 *
 * Bounds: nesting (json/decodable.ts); `membersMax` members; a refusal quotes at most
 * `excerptBytesMax` of the body; at most `strictCausesMax` warnings, or causes of a strict refusal.
 */
import type { ServedType } from '../../domain/catalogue/catalogue.js';
import { badRequest, invalid, invalidValue, Refused } from '../../domain/errors.js';
import { duplicates, hasDuplicates } from '../../json/duplicate-members.js';
import { scanDecodable } from '../../json/decodable.js';
import { member, NotJson, type ObjectText, valueText } from '../../json/object-text.js';
import { nothingAdded } from '../../domain/kept-names.js';
import { formatApiVersion } from '../../domain/resource.js';
import type { FieldValidation } from '../../domain/write-request.js';
import { cannotUnmarshal, typeAt, unknownMembers } from '../../json/meta-shape.js';
import { MisfitMeta, parseObjectMeta, type ObjectMeta } from '../../json/object-meta.js';
import { strictCause } from '../../json/json-parser.js';

/**
 * Counts the members of the object, its labels, its annotations, and all values in its metadata.
 * Each is checked, and a megabyte could hold 300,000 of them.
 */
const membersMax = 10_000;
/** Bounded, because the serving thread decodes the metadata and checks every member. */
const metadataBytesMax = 512 * 1024;
/** For a text with a repeated name, which is rewritten and scanned again. */
const repeatedBytesMax = 1024 * 1024;
const excerptBytesMax = 30;
/**
 * Bounds a kind or an apiVersion, because refusals quote it more than once. Kubernetes allows 253
 * characters in a group, and 63 in a version or kind.
 */
const typeCharactersMax = 512;
const strictCausesMax = 100;
const decoder = new TextDecoder();

/**
 * The object's type and the version, according to the URL. By default Kubernetes warns of repeated
 * and unknown names.
 */
export type Expected = Readonly<{ type: ServedType; version: string; fieldValidation: FieldValidation }>;

export type IncomingObject = Readonly<{ text: ObjectText; meta: ObjectMeta; warnings: readonly string[] }>;

/** `added`: how much other caches may have added to the object. Throws Refused. */
export function readObject(bytes: Uint8Array, expected: Expected, added = nothingAdded): IncomingObject {
  const { type, version } = expected;
  const text = scan(bytes, type, membersMax + added.members);
  const kind = typeText(text, type, 'kind');
  if (kind === '') throw unrecognized(bytes, type, `Object 'Kind' is missing in '${excerpt(bytes)}'`);
  const apiVersion = typeText(text, type, 'apiVersion');

  const unfit = (why: string): Refused => {
    const named = JSON.stringify(apiVersion.slice(apiVersion.indexOf('/') + 1));
    return new Refused(badRequest(`${kind} in version ${named} cannot be handled as a ${type.kind}: ${why}`));
  };
  const meta = decodeMeta(text, metadataBytesMax + added.bytes, unfit);
  const warnings = expected.fieldValidation === 'Ignore' ? [] : strictCauses(text);
  if (expected.fieldValidation === 'Strict' && warnings.length > 0) throw unfit(`strict decoding error: ${warnings.join(', ')}`);
  if (bytes.length > repeatedBytesMax && hasDuplicates(text))
    throw unfit(`an object of more than ${repeatedBytesMax} bytes must not repeat the name of a member`);

  const wanted = formatApiVersion(type.group, version);
  if (apiVersion !== wanted) {
    throw new Refused(badRequest(`the API version in the data (${apiVersion}) does not match the expected API version (${wanted})`));
  }
  if (kind !== type.kind) {
    const cause = invalidValue('kind', kind, `must be ${type.kind}`);
    throw new Refused(invalid({ group: type.group, kind, name: meta.name }, [cause]));
  }
  return { text, meta, warnings };
}

function scan(bytes: Uint8Array, type: ServedType, max: number): ObjectText {
  try {
    return scanDecodable(bytes, max);
  } catch (error) {
    if (error instanceof NotJson) throw unrecognized(bytes, type, `couldn't get version/kind; json parse error: ${error.message}`);
    throw error;
  }
}

/** The value of `kind` or `apiVersion`; '' when it is missing or null. */
function typeText(text: ObjectText, type: ServedType, name: string): string {
  const found = member(text.top, name);
  const value: unknown = found === undefined ? null : JSON.parse(valueText(text.bytes, found));
  if (typeof value === 'string') {
    if (value.length <= typeCharactersMax) return value;
    throw unrecognized(text.bytes, type, `couldn't get version/kind: ${name} has more than ${typeCharactersMax} characters`);
  }
  if (value === null) return '';
  const why = cannotUnmarshal(typeAt(text.bytes, found?.valueStart ?? 0), `.${name}`, 'string');
  throw unrecognized(text.bytes, type, `couldn't get version/kind; json parse error: ${why}`);
}

function decodeMeta(text: ObjectText, bytesMax: number, unfit: (why: string) => Refused): ObjectMeta {
  try {
    return parseObjectMeta(text, bytesMax);
  } catch (error) {
    if (error instanceof MisfitMeta) throw unfit(error.message);
    throw error;
  }
}

/**
 * Covers only what the scan sees. For a strict write that was parsed in full, the parser has
 * already refused repeated names.
 */
function strictCauses(text: ObjectText): readonly string[] {
  const repeated = new Set(hasDuplicates(text) ? duplicates(text) : []);
  const unknown = unknownMembers(text).flatMap(({ path, names }) => [...names].map((name) => `${path}.${name}`));
  const flaws = [...[...repeated].map((path) => ['duplicate', path] as const), ...unknown.map((path) => ['unknown', path] as const)];
  return flaws.slice(0, strictCausesMax).map(([flaw, path]) => strictCause(flaw, path));
}

function unrecognized(bytes: Uint8Array, { kind }: ServedType, why: string): Refused {
  return new Refused(badRequest(`the object provided is unrecognized (must be of type ${kind}): ${why} (${excerpt(bytes)})`));
}

/** The beginning of a body as Kubernetes shows it: in hex when it does not look like JSON. */
function excerpt(bytes: Uint8Array): string {
  if (bytes.length === 0) return '<empty>';
  const start = bytes.subarray(0, excerptBytesMax);
  const shown = bytes[0] === 0x7b ? decoder.decode(start) : Buffer.from(start).toString('hex');
  return bytes.length > excerptBytesMax ? `${shown} ...` : shown;
}
