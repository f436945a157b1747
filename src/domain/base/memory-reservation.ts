/**
 * Memory reserved for bytes that were made for one client and that the client has not received yet.
 * The producer reserves memory first, and releases it once the bytes are sent. When the client
 * ends, all its memory is released, and every wait ends.
 */
export interface MemoryReservation {
  tryReserve(bytes: number): boolean;
  /** Resolves to true once there is memory, or to false if the client ends first. */
  reserve(bytes: number): Promise<boolean>;
  /** Counts bytes that are already in memory, even beyond the bound. */
  add(bytes: number): void;
  release(bytes: number): void;
  /**
   * Replaces all earlier reservations with exactly these bytes, the size of the finished response.
   */
  reserveExactly(bytes: number): void;
}

/**
 * Reads each piece only once there is memory for `pieceBytesMax`, then keeps only the memory that
 * the piece needs. Ends with the client.
 */
export async function* withMemory(
  pieces: AsyncIterable<Uint8Array>,
  memory: Pick<MemoryReservation, 'reserve' | 'add' | 'release'>,
  pieceBytesMax: number,
): AsyncGenerator<Uint8Array> {
  const reading = pieces[Symbol.asyncIterator]();
  try {
    while (await memory.reserve(pieceBytesMax)) {
      const next = await reading.next();
      if (next.done === true) return memory.release(pieceBytesMax);
      memory.add(next.value.length);
      memory.release(pieceBytesMax);
      yield next.value;
    }
  } finally {
    await reading.return?.();
  }
}
