/**
 * msgpackr has no type declarations for its build without generated code. These are the parts that
 * frames use.
 */
declare module 'msgpackr/index-no-eval' {
  export class Packr {
    constructor(options: Readonly<Record<string, unknown>>);
    /**
     * The result is a view of a buffer that stays in use; later calls do not overwrite the result.
     */
    pack(value: unknown): Uint8Array;
  }

  export class Unpackr {
    constructor(options: Readonly<Record<string, unknown>>);
    unpack(bytes: Uint8Array): unknown;
  }
}
