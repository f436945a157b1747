/**
 * msgpackr with all features off that frames do not use, in its build without code generation and
 * native parts.
 *
 * Unpacked bytes are views of the message, so they keep the whole message in memory.
 */
import { Packr, Unpackr, type Options } from 'msgpackr/index-no-eval';
import { checkShape } from './msgpack-shape.js';

// msgpackr changes the options object it gets, so packer and unpacker get copies.
const options: Options = Object.freeze({
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

/** Throws BadFrame unless the message has the shape of a frame. */
export function unpack(bytes: Uint8Array): unknown {
  checkShape(bytes);
  return unpackr.unpack(bytes);
}

export function pack(value: unknown): Uint8Array {
  return packr.pack(value);
}
