/**
 * Adds the resourceVersion to an outgoing body, and another apiVersion if the client reads another
 * served version. Bytes are copied; only another apiVersion needs a scan of the body.
 */
import { member, scanObject } from './object-text.js';
import type { Body } from '../domain/object.js';

const encoder = new TextEncoder();
const quote = 0x22;
const openingBrace = 0x7b;

/**
 * The text to insert at `revisionAt`. This offset is at the beginning of a member, before the first
 * member and its white space, or after the last member.
 */
export function revisionText({ bytes, marks: { revisionAt } }: Body, resourceVersion: string): string {
  return bytes[revisionAt] === quote || bytes[revisionAt - 1] === openingBrace
    ? `"resourceVersion":"${resourceVersion}",`
    : `,"resourceVersion":"${resourceVersion}"`;
}

export function inVersion(body: Body, apiVersion: string, version: string): Body {
  if (body.version === version) return body;
  const { top } = scanObject(body.bytes, Infinity);
  const found = member(top, 'apiVersion');
  if (found === undefined) throw new Error('a stored body has no apiVersion');
  const text = encoder.encode(JSON.stringify(apiVersion));
  const moved = text.length - (found.valueEnd - found.valueStart);
  const bytes = new Uint8Array(body.bytes.length + moved);
  bytes.set(body.bytes.subarray(0, found.valueStart), 0);
  bytes.set(text, found.valueStart);
  bytes.set(body.bytes.subarray(found.valueEnd), found.valueStart + text.length);
  const shift = (offset: number): number => (offset > found.valueStart ? offset + moved : offset);
  const { metadataStart, metadataEnd, annotationsAt, revisionAt } = body.marks;
  return {
    bytes,
    version,
    marks: {
      metadataStart: shift(metadataStart),
      metadataEnd: shift(metadataEnd),
      annotationsAt: shift(annotationsAt),
      revisionAt: shift(revisionAt),
    },
  };
}
