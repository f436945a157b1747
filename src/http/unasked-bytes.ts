/**
 * What a peer has sent on a connection beside its requests: frames of HTTP/2 that ask for nothing, empty lines between requests of HTTP/1.1. Node reads
 * them without a word, megabytes in a turn of the event loop, and everybody waits.
 *
 * Bound: what is sent on the connection, `bytesPerSecond`, and `bytesMax` more. A peer that reads much sends much: it confirms what it has read.
 */
import type { IncomingMessage } from 'node:http';

const bytesMax = 1024 * 1024;
const bytesPerSecond = 64 * 1024;
/** What a request takes beside its headers and its body. */
const requestBytes = 1024;
/** What a peer may send of a body before somebody reads it. */
const unreadBodyBytesMax = 64 * 1024;
/** A body of HTTP/1.1 without a length that is not read, but for this much. */
const droppedBytesMax = 4 * 1024 * 1024;
const msPerSecond = 1000;

/** Bytes of the connection, since it was opened. */
export type Traffic = Readonly<{ bytesRead: number; bytesWritten: number; openMs: number; openRequests: number }>;

export class UnaskedBytes {
  #explained = 0;

  /** A request has come, with headers of so many bytes, and a body that its headers announce to have so many; 0 where somebody counts it. */
  request(headerBytes: number, bodyBytes: number): void {
    this.#explained += requestBytes + headerBytes + bodyBytes;
  }

  /** So many bytes of a body were read. Frames that bring little of it at a time weigh as much as what they bring. */
  body(bytes: number): void {
    this.#explained += 2 * bytes;
  }

  /** A request has ended whose body had not come whole: nobody has counted what came of it. */
  endedEarly(): void {
    this.#explained += unreadBodyBytesMax;
  }

  isTooMuch({ bytesRead, bytesWritten, openMs, openRequests }: Traffic): boolean {
    const mayBe = bytesWritten + (openMs / msPerSecond) * bytesPerSecond + openRequests * unreadBodyBytesMax;
    return bytesRead - this.#explained - mayBe > bytesMax;
  }
}

/**
 * What the headers of a request over HTTP/1.1 announce of its body: what nobody reads of it, Node drops by itself, without a word. Of a body without a length,
 * as much as there is ever dropped.
 */
export function announcedBytes({ headers }: IncomingMessage): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : droppedBytesMax;
}
