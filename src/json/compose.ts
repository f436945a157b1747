/**
 * Makes the stored body: the text that was sent, with the edits of `Stamp`.
 *
 * It removes `selfLink`, members of `metadata` that Kubernetes does not have, and
 * `metadata.resourceVersion`, because the revision is known only at the commit. It adds
 * `kcp.io/shard` and `kcp.io/cluster`, because every object that leaves the server must have them.
 * A name that appears twice keeps its last value, as in every JSON reader.
 */
import type { ClusterName } from '../domain/cluster.js';
import { hasDuplicates } from './duplicate-members.js';
import { unknownMembers } from './meta-shape.js';
import { member, scanObject, valueText, type Members, type ObjectText } from './object-text.js';
import type { Body, Marks } from '../domain/object.js';
import type { ShardName } from '../domain/shard.js';
import { applyEdits, mapEdits, mergeEdits, ownBuffer, removals, type Allocate, type Edit } from './text-edits.js';

/** Members of `metadata` that a stamp sets (JSON text) or drops (undefined). */
export type MetadataStamp = Readonly<
  Partial<
    Record<
      'name' | 'namespace' | 'uid' | 'creationTimestamp' | 'generation' | 'deletionTimestamp' | 'deletionGracePeriodSeconds',
      string | undefined
    >
  >
>;

export type Stamp = Readonly<{
  /**
   * Undefined for a dry run, whose object gets no place. The object's annotations stay, and
   * `annotationsAt` is meaningless.
   */
  place: Readonly<{ shard: ShardName; cluster: ClusterName }> | undefined;
  /** The whole `apiVersion` to store, and its version part. */
  apiVersion: string;
  version: string;
  metadata: MetadataStamp;
}>;

const encoder = new TextEncoder();
const newline = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const neverStored = ['resourceVersion', 'selfLink'];

/** `text` must have an object as its metadata. The body shares no memory with the text. */
export function compose(text: ObjectText, stamp: Stamp, allocate = ownBuffer): Body {
  if (hasDuplicates(text)) return compose(scanObject(withoutDuplicates(text), Infinity), stamp, allocate);
  if (text.metadata === undefined) throw new Error('an object without metadata was not refused');

  const { metadata } = text;
  const unknown = unknownMembers(text);
  const gone = dropped(stamp, unknown.find(({ members }) => members === metadata)?.names);
  const edits = [
    ...outside(text),
    ...versionEdit(text, stamp),
    ...metadataEdits(text, metadata, { stamp, gone }),
    ...unknown.flatMap(({ members, names }) => (members === metadata ? [] : removals(members, names))),
  ];
  const sorted = mergeEdits([...edits, ...placeEdits(text, metadata, stamp)]);
  const bytes = sorted.length === 0 ? copied(text.bytes, allocate) : applyEdits(text.bytes, sorted, allocate);
  return {
    bytes: text.hasLineBreaks ? onOneLine(bytes) : bytes,
    version: stamp.version,
    marks: marks(text, metadata, gone, sorted),
  };
}

/** Removes the bytes before and after the object. */
function outside({ bytes, top }: ObjectText): readonly Edit[] {
  return [
    { start: 0, end: top.start, text: '' },
    { start: top.end, end: bytes.length, text: '' },
  ].filter(({ start, end }) => end > start);
}

/** A body in memory must not keep its request or frame alive. */
function copied(bytes: Uint8Array, allocate: Allocate): Uint8Array {
  const copy = allocate(bytes.length);
  copy.set(bytes);
  return copy;
}

/**
 * Many clients split a watch at newlines. A raw newline in JSON can only be white space, so it
 * becomes a space. Changes the bytes in place, because no other code uses them yet.
 */
function onOneLine(bytes: Uint8Array): Uint8Array {
  const { length } = bytes;
  for (let i = 0; i < length; i++) {
    const byte = bytes[i] ?? 0;
    // Nearly every byte needs only the first comparison.
    if (byte <= carriageReturn && (byte === newline || byte === carriageReturn)) bytes[i] = space;
  }
  return bytes;
}

function versionEdit({ bytes, top }: ObjectText, { apiVersion }: Stamp): readonly Edit[] {
  const found = member(top, 'apiVersion');
  const wanted = JSON.stringify(apiVersion);
  if (found === undefined) return [{ start: top.start + 1, end: top.start + 1, text: `"apiVersion":${wanted},` }];
  return valueText(bytes, found) === wanted ? [] : [{ start: found.valueStart, end: found.valueEnd, text: wanted }];
}

function metadataEdits(
  { bytes }: ObjectText,
  metadata: Members,
  { stamp, gone }: Readonly<{ stamp: Stamp; gone: ReadonlySet<string> }>,
): readonly Edit[] {
  const edits: Edit[] = [...removals(metadata, gone)];
  for (const [name, value] of Object.entries(stamp.metadata)) {
    if (value === undefined) continue;
    const found = member(metadata, name);
    if (found === undefined) edits.push({ start: metadata.start + 1, end: metadata.start + 1, text: `"${name}":${value},` });
    else if (valueText(bytes, found) !== value) edits.push({ start: found.valueStart, end: found.valueEnd, text: value });
  }
  return edits;
}

function placeEdits(text: ObjectText, metadata: Members, { place }: Stamp): readonly Edit[] {
  if (place === undefined) return [];
  return mapEdits(text, metadata, 'annotations', { 'kcp.io/cluster': place.cluster, 'kcp.io/shard': place.shard });
}

function dropped(stamp: Stamp, unknown: Iterable<string> = []): ReadonlySet<string> {
  return new Set([
    ...neverStored,
    ...unknown,
    ...Object.entries(stamp.metadata).flatMap(([name, value]) => (value === undefined ? [name] : [])),
  ]);
}

function marks(text: ObjectText, metadata: Members, gone: ReadonlySet<string>, edits: readonly Edit[]): Marks {
  const insertedAnnotations = text.annotations === undefined ? annotationsInserted(text, metadata, edits) : undefined;
  return {
    metadataStart: moved(metadata.start, edits),
    metadataEnd: moved(metadata.end, edits),
    annotationsAt: insertedAnnotations ?? moved((text.annotations?.start ?? 0) + 1, edits),
    revisionAt: moved(revisionPlace(metadata, gone), edits),
  };
}

/** The place of the resourceVersion; before the first member if there was none. */
function revisionPlace(metadata: Members, gone: ReadonlySet<string>): number {
  const revision = member(metadata, 'resourceVersion');
  if (revision === undefined) return metadata.start + 1;
  const kept = metadata.list.filter(({ name }) => !gone.has(name));
  const isLast = !kept.some(({ keyStart }) => keyStart > revision.keyStart);
  return isLast ? (kept.at(-1)?.valueEnd ?? metadata.start + 1) : revision.keyStart;
}

function annotationsInserted(text: ObjectText, metadata: Members, edits: readonly Edit[]): number {
  const found = member(metadata, 'annotations');
  if (found !== undefined) return moved(found.valueStart, edits) + 1;
  const opening = '"annotations":{';
  const edit = edits.find(({ start, text: inserted }) => start === metadata.start + 1 && inserted.includes(opening));
  const at = edit?.text.indexOf(opening) ?? 0;
  return moved(metadata.start + 1, edits) + encoder.encode(edit?.text.slice(0, at)).length + opening.length;
}

/**
 * The new place of an old offset. An edit before the offset moves it; an insertion at the offset
 * does not.
 */
function moved(offset: number, edits: readonly Edit[]): number {
  let at = offset;
  for (const { start, end, text } of edits) {
    if (start >= offset) break;
    at += encoder.encode(text).length - (end - start);
  }
  return at;
}

/** The text with only the last of each repeated member. Rare, so it may build a new text. */
function withoutDuplicates({ bytes, top, metadata, annotations, labels }: ObjectText): Uint8Array {
  const inner = new Map<number, string>();
  const rebuilt = (members: Members | undefined): void => {
    if (members === undefined) return;
    const last = new Map(members.list.map((each) => [each.name, each]));
    const parts = [...last.values()].map((each) => `${JSON.stringify(each.name)}:${inner.get(each.valueStart) ?? valueText(bytes, each)}`);
    inner.set(members.start, `{${parts.join(',')}}`);
  };
  for (const members of [annotations, labels, metadata, top]) rebuilt(members);
  return encoder.encode(inner.get(top.start));
}
