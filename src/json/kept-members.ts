/** What a body has of the names that are kept on its copies (domain/kept-names.ts), put in and taken out of its text. Everything else stays byte for byte. */
import { keptPlaces, type NamesOfType } from '../domain/kept-names.js';
import type { Body } from '../domain/object.js';
import { member, scanObject, valueText, type ObjectText } from './object-text.js';
import { applyEdits, mapEdits, mergeEdits, removals, type Edit } from './text-edits.js';

/** Values by name. */
export type Kept = Readonly<Record<(typeof keptPlaces)[number], Readonly<Record<string, string>>>>;

/** Undefined where it has none of them. */
export function keptIn(body: Body, names: NamesOfType): Kept | undefined {
  const text = scanObject(body.bytes, Infinity);
  const [annotations, labels] = keptPlaces.map((place) => {
    const found = names[place].map((name) => [name, textIn(text, place, name)] as const);
    return Object.fromEntries(found.filter((each): each is [string, string] => each[1] !== undefined));
  });
  const kept: Kept = { annotations: annotations ?? {}, labels: labels ?? {} };
  return keptPlaces.some((place) => Object.keys(kept[place]).length > 0) ? kept : undefined;
}

/** With all of `kept` that it lacks. */
export function withKept(body: Body, kept: Kept | undefined): Body {
  if (kept === undefined) return body;
  const text = scanObject(body.bytes, Infinity);
  const { metadata } = text;
  if (metadata === undefined) return body;
  const edits = keptPlaces.flatMap((place) => {
    const missing = Object.entries(kept[place]).filter(([name]) => member(text[place], name) === undefined);
    return missing.length === 0 ? [] : mapEdits(text, metadata, place, Object.fromEntries(missing));
  });
  return edited(body, edits);
}

/** Without any of the names, and without labels where no other is left. */
export function withoutKept(body: Body, names: NamesOfType): Body {
  const { metadata, annotations, labels } = scanObject(body.bytes, Infinity);
  const areOthers = labels?.list.some(({ name }) => !names.labels.includes(name)) ?? false;
  const edits = [
    ...(annotations === undefined ? [] : removals(annotations, new Set(names.annotations))),
    ...(labels === undefined || !areOthers ? [] : removals(labels, new Set(names.labels))),
    ...(metadata === undefined || labels === undefined || areOthers ? [] : removals(metadata, new Set(['labels']))),
  ];
  return edited(body, edits);
}

function textIn({ bytes, ...text }: ObjectText, place: (typeof keptPlaces)[number], name: string): string | undefined {
  const found = member(text[place], name);
  const value: unknown = found === undefined ? undefined : JSON.parse(valueText(bytes, found));
  return typeof value === 'string' ? value : undefined;
}

/** The marks are found anew: every stored body has annotations, because its place is among them. */
function edited(body: Body, edits: readonly Edit[]): Body {
  if (edits.length === 0) return body;
  const bytes = applyEdits(body.bytes, mergeEdits(edits));
  const { metadata, annotations } = scanObject(bytes, Infinity);
  if (metadata === undefined || annotations === undefined) throw new Error('a stored body has no annotations');
  const { start, end } = metadata;
  return { ...body, bytes, marks: { metadataStart: start, metadataEnd: end, annotationsAt: annotations.start + 1, revisionAt: start + 1 } };
}
