import type { Key } from './key.js';
import type { Revision } from './revision.js';

/**
 * Byte offsets into a stored body. The scanner finds them once, when the body arrives, so that
 * readers splice and never scan.
 *
 *  {"apiVersion":"…","kind":"…","metadata":{"annotations":{"kcp.io/cluster":"…",…},…},…}
 *                            metadataStart ┘ annotationsAt ┘                         └ metadataEnd
 *
 * `metadataEnd` is behind the closing brace. `revisionAt` is where `"resourceVersion":"…"` is
 * inserted: before the '"' of a member, or directly behind the opening brace, or else behind the
 * last member.
 */
export type Marks = Readonly<{
  metadataStart: number;
  metadataEnd: number;
  annotationsAt: number;
  revisionAt: number;
}>;

/**
 * The JSON text of an object without its resourceVersion, in the API version that `version` names.
 */
export type Body = Readonly<{ bytes: Uint8Array; version: string; marks: Marks }>;

/**
 * An object in the store. `resourceVersion` is the text of the revision at which it was committed.
 */
export type StoredObject = Readonly<{
  key: Key;
  revision: Revision;
  resourceVersion: string;
  body: Body;
}>;
