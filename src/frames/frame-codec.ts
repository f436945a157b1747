/**
 * The one reader and the one writer of frames. The reader checks every known member, and ignores
 * further members, which later versions added (see the ladder in frame.ts). Reading a written frame
 * gives the same frame.
 */
import assert from 'node:assert/strict';
import { Packr, Unpackr } from 'msgpackr/index-no-eval';
import { BadFrame } from './bad-frame.js';
import { readMember, record } from './frame-fields.js';
import { frames, type Frame } from './frame.js';
import { checkShape } from './msgpack-shape.js';

const kinds = Object.entries(frames).map(([kind, { number, fields }]) => ({
  kind: kind as Frame['kind'],
  number,
  members: record(fields, Infinity),
}));
const byNumber = new Map<unknown, (typeof kinds)[number]>(kinds.map((each) => [each.number, each]));
const byKind = new Map(kinds.map((each) => [each.kind, each]));

/** Throws BadFrame. */
export function readFrame(bytes: Uint8Array): Frame {
  const values = unpack(bytes);
  if (!Array.isArray(values)) throw new BadFrame('the frame is not a list');
  const known = byNumber.get(values[0]);
  if (known === undefined) throw new BadFrame('the frame has an unknown kind');
  const { kind, members } = known;
  return { kind, ...readMember(kind, members.read, values.slice(1)) } as Frame;
}

export function writeFrame(frame: Frame): Uint8Array {
  const known = byKind.get(frame.kind);
  assert(known !== undefined, 'frames have a kind');
  return pack([known.number, ...(known.members.write(frame as never) as readonly unknown[])]);
}

// msgpackr changes the options object it gets, so packer and unpacker get copies.
const options = Object.freeze({
  useRecords: false,
  mapsAsObjects: false,
  moreTypes: false,
  structuredClone: false,
  bundleStrings: false,
  copyBuffers: false,
  useToJSON: false,
  encodeUndefinedAsNil: false,
  useFloat32: 0,
  int64AsType: 'number',
});
const packr = new Packr({ ...options });
const unpackr = new Unpackr({ ...options });

/**
 * Unpacks with msgpackr's build that has no code generation and no native parts. All features that
 * frames do not use are off.
 *
 * Unpacked bytes are views of the message, so they keep the whole message in memory.
 *
 * Throws BadFrame unless the message has the shape of a frame.
 */
export function unpack(bytes: Uint8Array): unknown {
  checkShape(bytes);
  return unpackr.unpack(bytes);
}

export function pack(value: unknown): Uint8Array {
  return packr.pack(value);
}
