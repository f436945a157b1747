/**
 * msgpackr has no type declarations for its build without generated code. These are the parts that
 * frames use.
 */
declare module 'msgpackr/index-no-eval' {
  export type Options = Readonly<{
    useRecords: false;
    mapsAsObjects: false;
    moreTypes: false;
    structuredClone: false;
    bundleStrings: false;
    copyBuffers: false;
    useToJSON: false;
    encodeUndefinedAsNil: false;
    useFloat32: 0;
    int64AsType: 'number';
  }>;

  export class Packr {
    constructor(options: Options);
    /**
     * The result is a view of a buffer that stays in use; later calls do not overwrite the result.
     */
    pack(value: unknown): Uint8Array;
  }

  export class Unpackr {
    constructor(options: Options);
    unpack(bytes: Uint8Array): unknown;
  }
}
