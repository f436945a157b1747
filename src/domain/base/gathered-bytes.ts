/**
 * Keeps bytes that arrive in pieces. A piece is a Uint8Array: however short, it takes about a
 * hundred bytes, and keeps its whole network buffer in memory. The peer chooses the pieces, so a
 * bound on their bytes alone could take a hundred times as much memory. Short pieces are therefore
 * copied together.
 */

/** Beyond this length the overhead of the Uint8Array is small. */
const shortBytesMax = 1_024;
/** Size of the largest buffer for copies. A longer piece gets a buffer of its own size. */
const copiedBytesMax = 16 * 1_024;
const nothing = Buffer.alloc(0);

export class GatheredBytes {
  #pieces: Uint8Array[] = [];
  /**
   * The buffer that short pieces are copied into. The bytes from `#from` to `#to` are not in
   * `#pieces` yet; those after `#to` are free.
   */
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

  /** Removes and returns all bytes, without joining the pieces. */
  take(): readonly Uint8Array[] {
    this.#endCopied();
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#copied = nothing;
    this.#from = this.#to = this.#bytes = 0;
    return pieces;
  }

  shift(): Uint8Array | undefined {
    if (this.#pieces.length === 0) this.#endCopied();
    const first = this.#pieces.shift();
    this.#bytes -= first?.length ?? 0;
    if (this.#bytes === 0) this.take();
    return first;
  }

  takeJoined(): Buffer {
    const pieces = this.take();
    const [first] = pieces;
    return pieces.length === 1 && first !== undefined ? Buffer.from(first.buffer, first.byteOffset, first.length) : Buffer.concat(pieces);
  }

  /**
   * As `takeJoined`, with `last` appended. If nothing was added before, it returns `last` itself,
   * without a copy.
   */
  takeJoinedWith(last: Uint8Array): Uint8Array {
    if (this.#bytes === 0) return last;
    this.add(last);
    return this.takeJoined();
  }

  #endCopied(): void {
    if (this.#to > this.#from) this.#pieces.push(this.#copied.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }
}

function isMostOfItsBuffer({ length, buffer }: Uint8Array): boolean {
  return length > shortBytesMax && 2 * length >= buffer.byteLength;
}
