/**
 * msgpackr with everything off that frames do not use, in its build that generates no code and loads no native parts.
 *
 * Unpacked bytes are views of the message: whoever keeps one keeps the message.
 */
import { Packr, Unpackr, type Options } from 'msgpackr/index-no-eval';
import { checkShape } from './msgpack-shape.js';

// msgpackr writes into the options it is given, so packer and unpacker get their own.
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

/** Throws BadFrame unless the bytes have the shape of frames. */
export function unpack(bytes: Uint8Array): unknown {
  checkShape(bytes);
  return unpackr.unpack(bytes);
}

export function pack(value: unknown): Uint8Array {
  return packr.pack(value);
}
