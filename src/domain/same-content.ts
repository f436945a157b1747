/**
 * Would storing `next` change anything? kcp repeats nearly every PUT, byte for byte, and a repetition must move nothing.
 *
 *   bytes equal ──▶ same        floats differ ──▶ not the same        else: exact values decide
 *
 * Each step is dearer than the one before and rarer: comparing bytes answers kcp's repetitions, native parsing finds what a
 * real update changed, and only texts that differ in member order or in the spelling of numbers need the lossless trees.
 * Equal numbers are equal as floats, so a difference there proves one. Nothing recurses: text may nest 10,000 deep.
 */
import { Buffer } from 'node:buffer';
import { parseJson } from './json-parser.js';
import { equalJson, type JsonTree } from './json-tree.js';
import { isObject } from './members.js';
import { mustParse } from './parsed.js';

const decoder = new TextDecoder();

/** Two JSON texts that were checked before. */
export function sameContent(next: Uint8Array, stored: Uint8Array): boolean {
  if (Buffer.compare(next, stored) === 0) return true;
  const [left, right] = [decoder.decode(next), decoder.decode(stored)];
  return equalFloats(JSON.parse(left), JSON.parse(right)) && equalJson(exact(left), exact(right));
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
