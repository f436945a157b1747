/**
 * What a peer has sent on a connection beside its requests: frames of HTTP/2 that ask for nothing, empty lines between requests of HTTP/1.1, records of TLS that
 * bring nothing or a byte. Node reads them without a word, megabytes in a turn of the event loop, and everybody waits.
 *
 * Bound: what is sent on the connection, `bytesPerSecond`, and `bytesMax` more. A peer that reads much sends much: it confirms what it has read.
 */
import type { IncomingMessage } from 'node:http';

const bytesMax = 256 * 1024;
const bytesPerSecond = 8 * 1024;
/** What a request takes beside its headers and its body. */
const requestBytes = 1024;
/** What may come of the body of a request that has ended. */
const lateBodyBytesMax = 64 * 1024;
/** A body of HTTP/1.1 without a length that is not read, but for this much. */
const droppedBytesMax = 4 * 1024 * 1024;
const msPerSecond = 1000;

/** Bytes since the connection was opened; those read are those of the wire. */
export type Traffic = Readonly<{ bytesRead: number; bytesWritten: number; openMs: number }>;

export class UnaskedBytes {
  #explained = 0;

  /** A request has come, with headers of so many bytes. */
  request(headerBytes: number): void {
    this.#explained += requestBytes + headerBytes;
  }

  /** So many bytes of a body have come. Frames that bring little of it at a time weigh as much as what they bring. */
  body(bytes: number): void {
    this.#explained += 2 * bytes;
  }

  /** So much of a body may come that nobody reads: Node drops it by itself, without a word. */
  dropped(bytes: number): void {
    this.#explained += bytes;
  }

  /** A request has ended whose body had not come whole. */
  endedEarly(): void {
    this.#explained += lateBodyBytesMax;
  }

  isTooMuch({ bytesRead, bytesWritten, openMs }: Traffic): boolean {
    return bytesRead - this.#explained - bytesWritten - (openMs / msPerSecond) * bytesPerSecond > bytesMax;
  }
}

/** What the headers of a request over HTTP/1.1 announce of its body. Of one without a length, as much as there is ever dropped. */
export function announcedBytes({ headers }: IncomingMessage): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : droppedBytesMax;
}
