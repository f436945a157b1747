import type { Key } from './key.js';
import type { Revision } from './revision.js';

/**
 * Byte offsets into a stored body, found once by the scanner when the body came in, so that reading splices and never scans.
 *
 *   {"apiVersion":"…","kind":"…","metadata":{"annotations":{"kcp.io/cluster":"…",…},…},…}
 *                                            metadataStart ┘  annotationsAt ┘        └ metadataEnd (behind the brace)
 *
 * `revisionAt` is where `"resourceVersion":"…"` belongs: before the member that starts there with '"', or with white space behind the opening brace, or else
 * after the last member.
 */
export type Marks = Readonly<{
  metadataStart: number;
  metadataEnd: number;
  annotationsAt: number;
  revisionAt: number;
}>;

/** The JSON text of an object without its resourceVersion, in the API version that `version` names. */
export type Body = Readonly<{ bytes: Uint8Array; version: string; marks: Marks }>;

/** An object as the store holds it. `resourceVersion` is the text of the revision it was committed at. */
export type StoredObject = Readonly<{
  key: Key;
  revision: Revision;
  resourceVersion: string;
  body: Body;
}>;
