/** A watch's sink, which is full when the test says so. */
import type { Sink } from '../../../src/domain/ports.js';

export class ASink implements Sink {
  isFull: boolean;
  writes = 0;
  write: (pieces: readonly Uint8Array[]) => void = () => {};

  constructor({ isFull = false } = {}) {
    this.isFull = isFull;
  }

  writeNow(pieces: readonly Uint8Array[]): void {
    if (this.isFull) throw new Error('it is full');
    this.writes += 1;
    this.write(pieces);
  }
}
