/**
 * Room in memory for what is made for one client and not yet taken. Whoever makes bytes for it reserves room first; whoever has sent
 * them returns it. When the client ends, what is left is returned, and every wait ends.
 */
export interface Room {
  /** False when there is none now. */
  tryTake(bytes: number): boolean;
  /** Resolves once there is room, or with false when the client went away first. */
  take(bytes: number): Promise<boolean>;
  /** For what is in memory already, however much room there is. */
  add(bytes: number): void;
  give(bytes: number): void;
  /** From now on exactly these bytes are in memory for it: its answer, whatever room was reserved to make it. */
  settle(bytes: number): void;
}

/** Reads each piece only once there is room for one of `pieceBytesMax`, then keeps only the room it needs. Ends when the client is gone. */
export async function* withRoom(
  pieces: AsyncIterable<Uint8Array>,
  room: Pick<Room, 'take' | 'add' | 'give'>,
  pieceBytesMax: number,
): AsyncGenerator<Uint8Array> {
  const reading = pieces[Symbol.asyncIterator]();
  try {
    while (await room.take(pieceBytesMax)) {
      const next = await reading.next();
      if (next.done === true) return room.give(pieceBytesMax);
      room.add(next.value.length);
      room.give(pieceBytesMax);
      yield next.value;
    }
  } finally {
    await reading.return?.();
  }
}
