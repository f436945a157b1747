/** The metadata that an update replaces. Only the members that are asked for are parsed. */
import { member, scanObject, valueText, type Members } from '../json/object-text.js';
import type { Body } from '../domain/object.js';

export class StoredMeta {
  readonly #bytes: Uint8Array;
  readonly #members: Members;

  constructor({ bytes, marks: { metadataStart, metadataEnd } }: Body) {
    this.#bytes = bytes.subarray(metadataStart, metadataEnd);
    this.#members = scanObject(this.#bytes, Infinity).top;
  }

  /** A member as JSON text; undefined if it is missing. */
  text(name: string): string | undefined {
    const found = member(this.#members, name);
    return found === undefined ? undefined : valueText(this.#bytes, found);
  }

  get uid(): string {
    const value: unknown = JSON.parse(this.text('uid') ?? '""');
    return typeof value === 'string' ? value : '';
  }

  /** 0 if it is missing, as in Go. */
  get generation(): bigint {
    const literal = this.text('generation') ?? '0';
    return literal === 'null' ? 0n : BigInt(literal);
  }
}
