/**
 * The values of objects in etcd: what kcp's own cache server reads and writes there. Pure.
 *
 * A value is the object's JSON and a line break. Its place annotations are whatever its writer sent; an object's place is that of its key. Where a
 * value is no object of its type, it is skipped by whoever reads it, and never rewritten: it is not ours. A path entry is stored as it is.
 */
import { isUtf8 } from 'node:buffer';
import type { CanonicalPath } from '../../domain/cluster.js';
import type { Key } from '../../domain/key.js';
import type { Body } from '../../domain/object.js';
import { isPathType, parsePathEntry, pathEntryBody, pathOfEntry } from '../../domain/path-entry.js';
import { formatApiVersion } from '../../domain/resource.js';
import { canonicalPathIn } from '../../json/canonical-path.js';
import { compose } from '../../json/compose.js';
import { member, type Member, nestingMax, NotJson, type ObjectText, scanObject, valueText } from '../../json/object-text.js';
import { ownBuffer, type Allocate } from '../../json/text-edits.js';

/** More than is taken from a client (intake/read-object.ts), because what was admitted has some members more when it is stored. */
const membersMax = 20_000;
const lineBreak = 0x0a;

type ReadValue = Readonly<{ body: Body; path: CanonicalPath | undefined }>;

/** Why a value cannot be served. */
export class Unreadable extends Error {}

export function valueOf({ bytes }: Body): Uint8Array {
  const value = new Uint8Array(bytes.length + 1);
  value.set(bytes);
  value[bytes.length] = lineBreak;
  return value;
}

/** The body as it would be if it had come in here, and the canonical path that it names. They share no memory with `value`. Throws Unreadable. */
export function readValue(key: Key, value: Uint8Array, allocate = ownBuffer): ReadValue {
  const bytes = value.at(-1) === lineBreak ? value.subarray(0, -1) : value;
  if (isPathType(key.resource)) return readEntry(key, bytes, allocate);
  const text = scan(bytes);
  const apiVersion = textOf(text, 'apiVersion');
  if (textOf(text, 'kind') === undefined) throw new Unreadable('it has no kind');
  const version = apiVersion?.slice(apiVersion.lastIndexOf('/') + 1) ?? '';
  const { group } = key.resource;
  if (version === '' || formatApiVersion(group, version) !== apiVersion)
    throw new Unreadable(`its apiVersion is ${JSON.stringify(apiVersion ?? null)}, and its key is of the group ${JSON.stringify(group)}`);
  if (text.metadata === undefined) throw new Unreadable('it has no metadata');
  const named = [metadataOf(text, 'namespace') ?? '', metadataOf(text, 'name') ?? ''].join('/');
  if (named !== `${key.namespace}/${key.name}`) throw new Unreadable(`it is named ${JSON.stringify(named)}, and its key is not`);
  return { body: compose(text, { place: key, apiVersion, version, metadata: {} }, allocate), path: canonicalPathIn(text) };
}

function readEntry(key: Key, bytes: Uint8Array, allocate: Allocate): ReadValue {
  const entry = parsePathEntry(key.resource, key.name, bytes);
  if (entry.kind === 'refused') throw new Unreadable(entry.refusal.message);
  const own = allocate(bytes.length);
  own.set(bytes);
  return { body: pathEntryBody(own), path: pathOfEntry(entry.value) };
}

function scan(value: Uint8Array): ObjectText {
  if (!isUtf8(value)) throw new Unreadable('it is not UTF-8');
  try {
    return scanObject(value, nestingMax, membersMax);
  } catch (error) {
    if (error instanceof NotJson) throw new Unreadable(error.message, { cause: error });
    throw error;
  }
}

function textOf(text: ObjectText, name: string): string | undefined {
  return stringOf(text, member(text.top, name));
}

function metadataOf(text: ObjectText, name: string): string | undefined {
  return stringOf(text, member(text.metadata, name));
}

function stringOf({ bytes }: ObjectText, found: Member | undefined): string | undefined {
  const value: unknown = found === undefined ? undefined : JSON.parse(valueText(bytes, found));
  return typeof value === 'string' ? value : undefined;
}
