/**
 * Whether storing `next` would change anything. kcp repeats nearly every PUT byte for byte, and a
 * repetition must not create a revision.
 *
 *   bytes equal ─▶ same    strings or floats differ ─▶ not the same    else: exact values decide
 *
 * Each step costs more than the one before and is needed less often. Comparing bytes detects kcp's
 * repetitions. Nearly every real update changes a string, which `stringsDiffer` sees without
 * parsing. Native parsing finds other changes. Only texts with another order of members, or another
 * spelling of numbers, need the lossless trees. Equal numbers are equal as floats, so a difference
 * of floats proves a change. Nothing recurses, because text may nest 10,000 levels deep.
 *
 * `stringsDiffer` counts a repeated member below the metadata twice, so removing one is a change.
 */
import { Buffer } from 'node:buffer';
import { parseJson } from './json-parser.js';
import { equalJson, type JsonTree } from './json-tree.js';
import { isObject } from '../domain/base/members.js';
import { mustParse } from '../domain/parsed.js';

const quote = 0x22;
const backslash = 0x5c;
const decoder = new TextDecoder();

/**
 * Whether the strings of the texts differ; then their contents differ. Takes some nanoseconds a
 * byte, and allocates nothing.
 */
export function stringsDiffer(next: Uint8Array, stored: Uint8Array): boolean {
  const [left, right] = [sumOfStrings(next), sumOfStrings(stored)];
  return left !== undefined && right !== undefined && left !== right;
}

/** Both texts must be valid JSON. */
export function sameContent(next: Uint8Array, stored: Uint8Array): boolean {
  if (Buffer.compare(next, stored) === 0) return true;
  const [left, right] = [decoder.decode(next), decoder.decode(stored)];
  return equalFloats(JSON.parse(left), JSON.parse(right)) && equalJson(exact(left), exact(right));
}

/**
 * A sum over the strings of a text, independent of their order. Undefined if a string does not end,
 * or has an escape, because escapes have several spellings.
 */
function sumOfStrings(text: Uint8Array): number | undefined {
  let sum = 0;
  for (let i = 0; i < text.length; i += 1) {
    if (text[i] !== quote) continue;
    let hash = 0;
    for (i += 1; text[i] !== quote; i += 1) {
      if (i >= text.length || text[i] === backslash) return undefined;
      hash = (Math.imul(hash, 31) + (text[i] ?? 0)) | 0;
    }
    // Squared: otherwise, moving characters from one string to another could keep the sum.
    sum = (sum + Math.imul(hash, hash | 1)) | 0;
  }
  return sum;
}

function exact(text: string): JsonTree {
  return mustParse(parseJson(text, { depthMax: Infinity }));
}

function equalFloats(left: unknown, right: unknown): boolean {
  const lefts = [left];
  const rights = [right];
  while (lefts.length > 0) {
    const a = lefts.pop();
    const b = rights.pop();
    if (Array.isArray(a)) {
      if (!Array.isArray(b) || a.length !== b.length) return false;
      for (const element of a) lefts.push(element);
      for (const element of b) rights.push(element);
    } else if (isObject(a)) {
      const names = Object.keys(a);
      if (!isObject(b) || Object.keys(b).length !== names.length) return false;
      for (const name of names) {
        if (!Object.hasOwn(b, name)) return false;
        lefts.push(a[name]);
        rights.push(b[name]);
      }
    } else if (a !== b) {
      return false;
    }
  }
  return true;
}
