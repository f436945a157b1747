/**
 * Names that are kept on copies (domain/kept-names.ts) in the text of a body: which of them were set on the copy stands there too, as an annotation. All of them are put in at
 * the front, in one order, so that the same names on the same text are the same bytes. Everything else stays as it is.
 */
import { keptAnnotation, keptPlaces, type NamesOfType } from '../domain/kept-names.js';
import type { Body } from '../domain/object.js';
import { member, scanObject, valueText, type ObjectText } from './object-text.js';
import { applyEdits, mapEdits, mergeEdits, removals, type Edit } from './text-edits.js';

type Place = (typeof keptPlaces)[number];

/** Of annotations and of labels, by name. */
export type Kept = Readonly<Record<Place, ReadonlyMap<string, string>>>;

type Chosen = (place: Place, name: string) => string | undefined;

/** What was set on the copy; undefined where nothing was. */
export function keptIn(body: Body, names: NamesOfType): Kept | undefined {
  const text = scanObject(body.bytes, Infinity);
  const marked = marksIn(text);
  if (marked.size === 0) return undefined;
  const kept = chosen(names, (place, name) => (marked.has(markOf(place, name)) ? textIn(text, place, name) : undefined));
  return isEmpty(kept) ? undefined : kept;
}

/** What it has under the names, whoever has set that. */
export function listedIn(body: Body, names: NamesOfType): Kept {
  const text = scanObject(body.bytes, Infinity);
  return chosen(names, (place, name) => textIn(text, place, name));
}

/** For each listed name what `choose` gives. */
export function chosen(names: NamesOfType, choose: Chosen): Kept {
  const of = (place: Place): ReadonlyMap<string, string> => {
    const found = names[place].map((name) => [name, choose(place, name)] as const);
    return new Map(found.filter((each): each is [string, string] => each[1] !== undefined));
  };
  return { annotations: of('annotations'), labels: of('labels') };
}

/** With all of `kept` that it lacks, marked as set on the copy: what a pusher sends replaces what was set under the same name. */
export function withKept(body: Body, kept: Kept | undefined): Body {
  if (kept === undefined) return body;
  const text = scanObject(body.bytes, Infinity);
  const lacking = (place: Place): ReadonlyMap<string, string> =>
    new Map([...kept[place]].filter(([name]) => member(text[place], name) === undefined));
  const added = { annotations: lacking('annotations'), labels: lacking('labels') };
  return withNames(body, added, added);
}

/** With these values, of which those are marked. */
export function withNames(body: Body, values: Kept, marked: Kept): Body {
  const text = scanObject(body.bytes, Infinity);
  const { metadata } = text;
  if (metadata === undefined || isEmpty(values)) return body;
  const marks = marksOf(marked);
  const annotations = { ...Object.fromEntries(values.annotations), ...(marks.length > 0 && { [keptAnnotation]: marks.join(',') }) };
  const edits = [
    ...mapEdits(text, metadata, 'annotations', annotations),
    ...(values.labels.size === 0 ? [] : mapEdits(text, metadata, 'labels', Object.fromEntries(values.labels))),
  ];
  return edited(body, edits);
}

/** Without what marks names as set on the copy: a new one, or one as its shard has it, has none of these. */
export function unmarked(body: Body): Body {
  const { annotations } = scanObject(body.bytes, Infinity);
  return annotations === undefined ? body : edited(body, removals(annotations, new Set([keptAnnotation])));
}

/** Without any of the names, and without labels where no other is left. */
export function withoutNames(body: Body, names: NamesOfType): Body {
  const { metadata, annotations, labels } = scanObject(body.bytes, Infinity);
  const areOthers = labels?.list.some(({ name }) => !names.labels.includes(name)) ?? false;
  const edits = [
    ...(annotations === undefined ? [] : removals(annotations, new Set([...names.annotations, keptAnnotation]))),
    ...(labels === undefined || !areOthers ? [] : removals(labels, new Set(names.labels))),
    ...(metadata === undefined || labels === undefined || areOthers ? [] : removals(metadata, new Set(['labels']))),
  ];
  return edited(body, edits);
}

/** As they are marked: `x.io/cordon`, `label x.io/zone`. */
export function marksOf(kept: Kept): readonly string[] {
  return keptPlaces.flatMap((place) => [...kept[place].keys()].map((name) => markOf(place, name)));
}

function marksIn(text: ObjectText): ReadonlySet<string> {
  return new Set(textIn(text, 'annotations', keptAnnotation)?.split(','));
}

function markOf(place: Place, name: string): string {
  return place === 'annotations' ? name : `label ${name}`;
}

function isEmpty(kept: Kept): boolean {
  return keptPlaces.every((place) => kept[place].size === 0);
}

function textIn({ bytes, ...text }: ObjectText, place: Place, name: string): string | undefined {
  const found = member(text[place], name);
  const value: unknown = found === undefined ? undefined : JSON.parse(valueText(bytes, found));
  return typeof value === 'string' ? value : undefined;
}

/** The offsets are found anew: every stored body has annotations, because its place is among them. */
function edited(body: Body, edits: readonly Edit[]): Body {
  if (edits.length === 0) return body;
  const bytes = applyEdits(body.bytes, mergeEdits(edits));
  const { metadata, annotations } = scanObject(bytes, Infinity);
  if (metadata === undefined || annotations === undefined) throw new Error('a stored body has no annotations');
  const { start, end } = metadata;
  return { ...body, bytes, marks: { metadataStart: start, metadataEnd: end, annotationsAt: annotations.start + 1, revisionAt: start + 1 } };
}
