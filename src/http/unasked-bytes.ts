/**
 * What a peer has sent on a connection beside its requests. Node reads it without a word, megabytes in a turn of the event loop, and everybody waits.
 *
 * Of two kinds, each with the same bound: `bytesMax`, and `bytesPerSecond`.
 * - Frames of HTTP/2 that ask for nothing, empty lines between requests of HTTP/1.1. As much as is sent to the peer may come in addition: who reads much confirms it.
 * - What TLS puts around bytes: changes of keys, records that bring a byte. They cost a hundred times what other bytes do, so little of what is asked or sent
 *   explains them.
 */
const bytesMax = 256 * 1024;
const bytesPerSecond = 8 * 1024;
/** What a request takes beside its headers and its body, and what TLS puts around it. */
const requestBytes = 1024;
const requestRecordBytes = 128;
/** Frames that bring little of a body weigh as much as what they bring; and some of a body may come that is not wanted any more. */
const weightOfBody = 3;
/** What TLS puts around bytes, at most, in records of 220 bytes. */
const recordShare = 0.1;
/** The same for what is no HTTP any more: whoever speaks it counts its bytes. */
const otherRecordShare = 8;
const msPerSecond = 1000;

/** Bytes since the connection was opened. `wireBytes`: read of the socket under its TLS. `isHttp`: whether it still carries requests. */
export type Traffic = Readonly<{ wireBytes: number; bytesRead: number; bytesWritten: number; openMs: number; isHttp: boolean }>;

export class UnaskedBytes {
  #asked = 0;
  #requests = 0;

  /** A request has come, with headers of so many bytes. */
  request(headerBytes: number): void {
    this.#asked += requestBytes + headerBytes;
    this.#requests += 1;
  }

  /** So many bytes of a body have come. */
  body(bytes: number): void {
    this.#asked += weightOfBody * bytes;
  }

  isTooMuch({ wireBytes, bytesRead, bytesWritten, openMs, isHttp }: Traffic): boolean {
    const mayBe = bytesMax + (openMs / msPerSecond) * bytesPerSecond;
    if (isHttp && bytesRead - this.#asked - bytesWritten > mayBe) return true;
    const around = (isHttp ? recordShare : otherRecordShare) * (bytesRead + bytesWritten) + requestRecordBytes * this.#requests;
    return wireBytes - bytesRead - around > mayBe;
  }
}
