/**
 * Edits of an object's text: spans and their replacements. All bytes between them are copied. Edits
 * may touch but never overlap.
 */
import { Buffer } from 'node:buffer';
import { member, valueText, type Members, type ObjectText } from './object-text.js';

/**
 * `text` replaces the bytes of the old text from `start` to `end`. If both offsets are equal,
 * `text` is inserted.
 */
export type Edit = Readonly<{ start: number; end: number; text: string }>;

const encoder = new TextEncoder();

/**
 * Sets annotations or labels: replaces an existing value that differs, else inserts before all
 * others.
 */
export function mapEdits(
  { bytes, ...text }: ObjectText,
  metadata: Members,
  place: 'annotations' | 'labels',
  values: Readonly<Record<string, string>>,
): readonly Edit[] {
  const members = text[place];
  const wanted = Object.entries(values).map(([name, value]) => [name, JSON.stringify(value)] as const);
  if (members === undefined) {
    const whole = `{${wanted.map(([name, value]) => `"${name}":${value}`).join(',')}}`;
    const found = member(metadata, place);
    if (found !== undefined) return [{ start: found.valueStart, end: found.valueEnd, text: whole }];
    const at = metadata.start + 1;
    return [{ start: at, end: at, text: `"${place}":${whole}${metadata.list.length > 0 ? ',' : ''}` }];
  }
  const edits: Edit[] = [];
  const missing: string[] = [];
  for (const [name, value] of wanted) {
    const found = member(members, name);
    if (found === undefined) missing.push(`"${name}":${value}`);
    else if (valueText(bytes, found) !== value) edits.push({ start: found.valueStart, end: found.valueEnd, text: value });
  }
  const at = members.start + 1;
  if (missing.length > 0) edits.push({ start: at, end: at, text: missing.join(',') + (members.list.length > 0 ? ',' : '') });
  return edits;
}

/**
 * One edit per member to drop; for a run of such members at the end, one edit that includes the
 * comma before it.
 */
export function removals(members: Members, gone: ReadonlySet<string>): readonly Edit[] {
  const { list } = members;
  const lastKept = list.findLastIndex(({ name }) => !gone.has(name));
  const edits: Edit[] = [];
  list.slice(0, lastKept + 1).forEach(({ name, keyStart }, i) => {
    const next = list[i + 1];
    if (gone.has(name) && next !== undefined) edits.push({ start: keyStart, end: next.keyStart, text: '' });
  });
  const last = list.at(-1);
  if (last !== undefined && lastKept < list.length - 1) {
    edits.push({ start: list[lastKept]?.valueEnd ?? members.start + 1, end: last.valueEnd, text: '' });
  }
  return edits;
}

/** Sorts by place, and joins insertions at one place. */
export function mergeEdits(edits: readonly Edit[]): readonly Edit[] {
  const sorted = edits.toSorted((a, b) => a.start - b.start || a.end - b.end);
  const merged: Edit[] = [];
  for (const edit of sorted) {
    const before = merged.at(-1);
    if (before !== undefined && before.start === edit.start && before.end === before.start) {
      merged[merged.length - 1] = { start: before.start, end: edit.end, text: before.text + edit.text };
    } else merged.push(edit);
  }
  return merged;
}

export type Allocate = (length: number) => Uint8Array;

/** A new buffer each time, not filled with zeros: the caller writes all of it. */
export const ownBuffer: Allocate = (length) => new Uint8Array(Buffer.allocUnsafeSlow(length).buffer);

/** The same memory each time: a call overwrites the result of the one before. */
export function scratchBuffer(): Allocate {
  let scratch: Uint8Array = new Uint8Array(0);
  return (length) => {
    if (scratch.length < length) scratch = ownBuffer(2 * length);
    return scratch.subarray(0, length);
  };
}

/** Returns `bytes` itself, not a copy, if there are no edits. */
export function applyEdits(bytes: Uint8Array, edits: readonly Edit[], allocate = ownBuffer): Uint8Array {
  if (edits.length === 0) return bytes;
  const texts = edits.map(({ text }) => encoder.encode(text));
  const length = edits.reduce((sum, { start, end }, i) => sum + (texts[i]?.length ?? 0) - (end - start), bytes.length);
  const out = allocate(length);
  let from = 0;
  let to = 0;
  edits.forEach(({ start, end }, i) => {
    const text = texts[i] ?? new Uint8Array(0);
    out.set(bytes.subarray(from, start), to);
    out.set(text, to + start - from);
    to += start - from + text.length;
    from = end;
  });
  out.set(bytes.subarray(from), to);
  return out;
}
