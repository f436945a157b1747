/**
 * Bytes that come in pieces and are kept for a while. A piece is an object, which takes a hundred bytes however short it is, and it keeps all that was read from the
 * network with it. The other end chooses the pieces: what is bounded by its bytes alone could take a hundred times as much. Such pieces are copied together, so
 * that what is kept takes little more than its bytes.
 */

/** Of longer ones, the object costs little. */
const shortBytesMax = 1_024;
/** What pieces are copied into; a longer one into its own. */
const copiedBytesMax = 16 * 1_024;
const nothing = Buffer.alloc(0);

export class GatheredBytes {
  #pieces: Uint8Array[] = [];
  /** Where short pieces are copied to: what comes behind `#from` is no piece yet, what comes behind `#to` is free. */
  #copied: Uint8Array = nothing;
  #from = 0;
  #to = 0;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  add(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#bytes += piece.length;
    if (isMostOfItsBuffer(piece)) {
      this.#endCopied();
      this.#pieces.push(piece);
      return;
    }
    if (this.#to + piece.length > this.#copied.length) {
      this.#endCopied();
      const bytes = Math.min(copiedBytesMax, 2 * Math.max(this.#copied.length, shortBytesMax));
      this.#copied = Buffer.allocUnsafeSlow(Math.max(bytes, piece.length));
      this.#from = this.#to = 0;
    }
    this.#copied.set(piece, this.#to);
    this.#to += piece.length;
  }

  /** All that was added since the last time, in as few pieces as it is kept in. */
  take(): readonly Uint8Array[] {
    this.#endCopied();
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#copied = nothing;
    this.#from = this.#to = this.#bytes = 0;
    return pieces;
  }

  /** The first of these pieces. */
  shift(): Uint8Array | undefined {
    if (this.#pieces.length === 0) this.#endCopied();
    const first = this.#pieces.shift();
    this.#bytes -= first?.length ?? 0;
    if (this.#bytes === 0) this.take();
    return first;
  }

  /** As one. */
  takeWhole(): Buffer {
    const pieces = this.take();
    const [first] = pieces;
    return pieces.length === 1 && first !== undefined ? Buffer.from(first.buffer, first.byteOffset, first.length) : Buffer.concat(pieces);
  }

  /** As one, with this behind it, which is not copied where nothing was added before. */
  takeWholeWith(last: Uint8Array): Uint8Array {
    if (this.#bytes === 0) return last;
    this.add(last);
    return this.takeWhole();
  }

  #endCopied(): void {
    if (this.#to > this.#from) this.#pieces.push(this.#copied.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }
}

function isMostOfItsBuffer({ length, buffer }: Uint8Array): boolean {
  return length > shortBytesMax && 2 * length >= buffer.byteLength;
}
