/**
 * The values of objects in etcd, as kcp's own cache server reads and writes them. Pure.
 *
 * A value is the object's JSON and a line break. The place annotations in it are those that the
 * writer sent; the object's place is that of the key. Readers skip a value that is no object of the
 * key's type, and leave it to the program that owns it. A path entry is stored as it is.
 */
import { kcpTypes } from '../../domain/catalogue/catalogue-kcp.js';
import type { CanonicalPath } from '../../domain/cluster.js';
import type { Key } from '../../domain/key.js';
import type { Body } from '../../domain/object.js';
import { isPathType, parsePathEntry, pathEntryBody, pathOfEntry } from '../../domain/path-entry.js';
import { formatApiVersion, formatGroupResource } from '../../domain/resource.js';
import { compose } from '../../json/compose.js';
import { scanDecodable } from '../../json/decodable.js';
import { canonicalPathIn, confirmMeta, MisfitMeta } from '../../json/object-meta.js';
import { member, memberText, NotJson, type ObjectText } from '../../json/object-text.js';
import { ownBuffer, type Allocate } from '../../json/text-edits.js';

/**
 * Above the limit for clients (read-object.ts), because the server adds members to stored objects.
 */
const membersMax = 20_000;
const lineBreak = 0x0a;
/**
 * A wrong kind would end the watch of a Go client. The kinds of declared types are not known here.
 */
const builtInKinds: ReadonlyMap<string, string> = new Map(kcpTypes.map((type) => [formatGroupResource(type), type.kind]));

type ReadValue = Readonly<{ body: Body; path: CanonicalPath | undefined }>;

/** A value that cannot be served; the message says why. */
export class Unreadable extends Error {}

export function valueOf({ bytes }: Body): Uint8Array {
  const value = new Uint8Array(bytes.length + 1);
  value.set(bytes);
  value[bytes.length] = lineBreak;
  return value;
}

/**
 * Returns the body as if a client had sent it to this server, and the canonical path that the
 * object names. Neither shares memory with `value`. Throws Unreadable.
 */
export function readValue(key: Key, value: Uint8Array, allocate = ownBuffer): ReadValue {
  const bytes = value.at(-1) === lineBreak ? value.subarray(0, -1) : value;
  if (isPathType(key.resource)) return readEntry(key, bytes, allocate);
  const text = decoded(bytes);
  const [apiVersion, kind] = [memberText(bytes, text.top, 'apiVersion'), memberText(bytes, text.top, 'kind')];
  if (kind === undefined) throw new Unreadable('it has no kind');
  const { group, resource } = key.resource;
  const wanted = builtInKinds.get(formatGroupResource({ group, resource })) ?? kind;
  if (kind !== wanted) throw new Unreadable(`its kind is ${JSON.stringify(kind)}, but its key is of the kind ${wanted}`);
  const version = apiVersion?.slice(apiVersion.lastIndexOf('/') + 1) ?? '';
  if (version === '' || formatApiVersion(group, version) !== apiVersion)
    throw new Unreadable(`its apiVersion is ${JSON.stringify(apiVersion ?? null)}, but its key is of the group ${JSON.stringify(group)}`);
  const metadata = member(text.top, 'metadata');
  if (metadata === undefined || metadata.valueStart !== text.metadata?.start) throw new Unreadable('it has no metadata');
  const named = `${memberText(bytes, text.metadata, 'namespace') ?? ''}/${memberText(bytes, text.metadata, 'name') ?? ''}`;
  if (named !== `${key.namespace}/${key.name}`) throw new Unreadable(`it is named ${JSON.stringify(named)}, but its key is not`);
  return { body: compose(text, { place: key, apiVersion, version, metadata: {} }, allocate), path: canonicalPathIn(text) };
}

function readEntry(key: Key, bytes: Uint8Array, allocate: Allocate): ReadValue {
  const entry = parsePathEntry(key.resource, key.name, bytes);
  if (entry.kind === 'refused') throw new Unreadable(entry.refusal.message);
  const own = allocate(bytes.length);
  own.set(bytes);
  return { body: pathEntryBody(own), path: pathOfEntry(entry.value) };
}

function decoded(value: Uint8Array): ObjectText {
  try {
    const text = scanDecodable(value, membersMax);
    confirmMeta(text);
    return text;
  } catch (error) {
    if (error instanceof NotJson || error instanceof MisfitMeta) throw new Unreadable(error.message, { cause: error });
    throw error;
  }
}
