/**
 * Would storing `next` change anything? kcp repeats nearly every PUT, byte for byte, and a repetition must move nothing.
 *
 *   bytes equal ──▶ same        strings or floats differ ──▶ not the same        else: exact values decide
 *
 * Each step is dearer than the one before and rarer: comparing bytes answers kcp's repetitions, and the strings differ in nearly every real update,
 * which is seen without parsing (`stringsDiffer`). Native parsing finds other changes, and only texts that differ in member order or in the spelling
 * of numbers need the lossless trees. Equal numbers are equal as floats, so a difference there proves one. Nothing recurses: text may nest 10,000 deep.
 *
 * A member that stands twice, deeper than in the metadata, counts as two: with and without it are two contents.
 */
import { Buffer } from 'node:buffer';
import { parseJson } from './json-parser.js';
import { equalJson, type JsonTree } from './json-tree.js';
import { isObject } from '../domain/members.js';
import { mustParse } from '../domain/parsed.js';

const quote = 0x22;
const backslash = 0x5c;
const decoder = new TextDecoder();

/** Whether the two texts have other strings: then they do not say the same. Some nanoseconds a byte, and nothing is kept. */
export function stringsDiffer(next: Uint8Array, stored: Uint8Array): boolean {
  const [left, right] = [sumOfStrings(next), sumOfStrings(stored)];
  return left !== undefined && right !== undefined && left !== right;
}

/** Two JSON texts that were checked before. */
export function sameContent(next: Uint8Array, stored: Uint8Array): boolean {
  if (Buffer.compare(next, stored) === 0) return true;
  const [left, right] = [decoder.decode(next), decoder.decode(stored)];
  return equalFloats(JSON.parse(left), JSON.parse(right)) && equalJson(exact(left), exact(right));
}

/** A sum over the strings of a text, whatever their order; undefined where one has an escape, because it may be spelled in several ways, or does not end. */
function sumOfStrings(text: Uint8Array): number | undefined {
  let sum = 0;
  for (let i = 0; i < text.length; i += 1) {
    if (text[i] !== quote) continue;
    let hash = 0;
    for (i += 1; text[i] !== quote; i += 1) {
      if (i >= text.length || text[i] === backslash) return undefined;
      hash = (Math.imul(hash, 31) + (text[i] ?? 0)) | 0;
    }
    // Squared, or what moves from one string to another would leave the sum as it is.
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
