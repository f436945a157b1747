/**
 * Room in memory for what one client is sent and has not taken yet. Whoever makes bytes for it takes room for them; whoever has sent
 * them gives it back. The end of the client gives back whatever is left, and ends every wait.
 */
export interface Room {
  /** False when there is none now. */
  tryTake(bytes: number): boolean;
  /** Resolves once there is room: with false when the client went away first. */
  take(bytes: number): Promise<boolean>;
  /** For what is in memory already, however much room there is. */
  add(bytes: number): void;
  give(bytes: number): void;
  /** From now on exactly these bytes are in memory for it: its answer, whatever room was taken to make it. */
  settle(bytes: number): void;
}

/** Reads each piece only once there is room for one of `pieceBytesMax`, and hands it on with room taken for what it really is. Ends when the client is gone. */
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
