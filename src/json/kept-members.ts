/**
 * Reads and writes, in the text of a body, the annotations and labels that are kept on copies
 * (domain/kept-names.ts). An annotation lists the names that were set on the copy. New members are
 * inserted at the front in a fixed order, so equal inputs give equal bytes. Everything else stays
 * as it is.
 */
import { keptAnnotation, keptMaps, type NamesOfType } from '../domain/kept-names.js';
import type { Body } from '../domain/object.js';
import { member, memberText, scanObject, type ObjectText } from './object-text.js';
import { applyEdits, mapEdits, mergeEdits, removals, type Edit } from './text-edits.js';

type Place = (typeof keptMaps)[number];

export type Kept = Readonly<Record<Place, ReadonlyMap<string, string>>>;

type Chosen = (place: Place, name: string) => string | undefined;

/** The names and values set on the copy; undefined if there are none. */
export function keptIn(body: Body, names: NamesOfType): Kept | undefined {
  const text = scanObject(body.bytes, Infinity);
  const marked = marksIn(text);
  if (marked.size === 0) return undefined;
  const kept = chosen(names, (place, name) => (marked.has(markOf(place, name)) ? memberText(text.bytes, text[place], name) : undefined));
  return isEmpty(kept) ? undefined : kept;
}

/** The values under the names, whether set on the copy or on the shard. */
export function listedIn(body: Body, names: NamesOfType): Kept {
  const text = scanObject(body.bytes, Infinity);
  return chosen(names, (place, name) => memberText(text.bytes, text[place], name));
}

export function chosen(names: NamesOfType, choose: Chosen): Kept {
  const of = (place: Place): ReadonlyMap<string, string> => {
    const found = names[place].map((name) => [name, choose(place, name)] as const);
    return new Map(found.filter((each): each is [string, string] => each[1] !== undefined));
  };
  return { annotations: of('annotations'), labels: of('labels') };
}

/**
 * Adds the members of `kept` that the body lacks, marked as set on the copy. A value that the
 * pusher sends wins over one that was set on the copy under the same name.
 */
export function withKept(body: Body, kept: Kept | undefined): Body {
  if (kept === undefined) return body;
  const text = scanObject(body.bytes, Infinity);
  const lacking = (place: Place): ReadonlyMap<string, string> =>
    new Map([...kept[place]].filter(([name]) => member(text[place], name) === undefined));
  return withNames(body, { annotations: lacking('annotations'), labels: lacking('labels') });
}

/** Sets the values, and marks their names. */
export function withNames(body: Body, kept: Kept): Body {
  const text = scanObject(body.bytes, Infinity);
  const { metadata } = text;
  if (metadata === undefined || isEmpty(kept)) return body;
  const annotations = { ...Object.fromEntries(kept.annotations), [keptAnnotation]: marksOf(kept).join(',') };
  const edits = [
    ...mapEdits(text, metadata, 'annotations', annotations),
    ...(kept.labels.size === 0 ? [] : mapEdits(text, metadata, 'labels', Object.fromEntries(kept.labels))),
  ];
  return edited(body, edits);
}

/**
 * Removes the marks that were sent, because only the cache sets them. Annotations that consist of
 * marks are removed as a whole: the body then has the same bytes as one that was sent without marks.
 */
export function unmarked(text: ObjectText): ObjectText {
  const { bytes, metadata, annotations } = text;
  if (metadata === undefined || annotations === undefined || member(annotations, keptAnnotation) === undefined) return text;
  const areOthers = annotations.list.some(({ name }) => name !== keptAnnotation);
  const edits = areOthers ? removals(annotations, new Set([keptAnnotation])) : removals(metadata, new Set(['annotations']));
  return scanObject(applyEdits(bytes, edits), Infinity);
}

/**
 * Removes the annotations and labels with these names, and the marks. Removes `labels` itself if no
 * other label is left.
 */
export function withoutNames(body: Body, names: Pick<NamesOfType, Place>): Body {
  const { metadata, annotations, labels } = scanObject(body.bytes, Infinity);
  const areOthers = labels?.list.some(({ name }) => !names.labels.includes(name)) ?? false;
  const edits = [
    ...(annotations === undefined ? [] : removals(annotations, new Set([...names.annotations, keptAnnotation]))),
    ...(labels === undefined || !areOthers ? [] : removals(labels, new Set(names.labels))),
    ...(metadata === undefined || labels === undefined || areOthers ? [] : removals(metadata, new Set(['labels']))),
  ];
  return edited(body, edits);
}

/** The marks in their text form: `x.io/cordon`, `label x.io/zone`. */
export function marksOf(kept: Kept): readonly string[] {
  return keptMaps.flatMap((place) => [...kept[place].keys()].map((name) => markOf(place, name)));
}

function marksIn({ bytes, annotations }: ObjectText): ReadonlySet<string> {
  return new Set(memberText(bytes, annotations, keptAnnotation)?.split(','));
}

function markOf(place: Place, name: string): string {
  return place === 'annotations' ? name : `label ${name}`;
}

function isEmpty(kept: Kept): boolean {
  return keptMaps.every((place) => kept[place].size === 0);
}

/**
 * Scans the result for its offsets. Every stored body has annotations, because they name its shard
 * and logical cluster.
 */
function edited(body: Body, edits: readonly Edit[]): Body {
  if (edits.length === 0) return body;
  const bytes = applyEdits(body.bytes, mergeEdits(edits));
  const { metadata, annotations } = scanObject(bytes, Infinity);
  if (metadata === undefined || annotations === undefined) throw new Error('a stored body has no annotations');
  const { start, end } = metadata;
  return { ...body, bytes, marks: { metadataStart: start, metadataEnd: end, annotationsAt: annotations.start + 1, revisionAt: start + 1 } };
}
