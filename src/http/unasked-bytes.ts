/**
 * What a peer has sent on a connection beside its requests. Node reads it without a word, megabytes in a turn of the event loop, and everybody waits.
 *
 * Of two kinds, each with the same bound: `bytesMax`, and `bytesPerSecond` for as long as such bytes come. Time in which none came allows nothing.
 * - Frames of HTTP/2 that ask for nothing, empty lines between requests of HTTP/1.1. As much as is sent to the peer may come in addition: who reads much confirms it.
 * - What TLS puts around bytes: changes of keys, records that bring a byte. They cost a hundred times what other bytes do, so little of what is asked or sent
 *   explains them.
 */
const bytesMax = 256 * 1024;
const bytesPerSecond = 8 * 1024;
/** What a request takes beside its headers and its body, and what TLS puts around it. */
const requestBytes = 1024;
const requestRecordBytes = 256;
/** Frames that bring little of a body weigh as much as what they bring; and some of a body may come that is not wanted any more. */
const weightOfBody = 3;
/** What TLS puts around bytes that are read, at most, in records of 700 bytes; and around what confirms bytes that were sent. */
const recordShare = 0.03;
const confirmingShare = 0.01;
/** The same for what is no HTTP any more: whoever speaks it counts its bytes. */
const otherRecordShare = 4;
const msPerSecond = 1000;

/** Bytes since the connection was opened. `wireBytes`: read of the socket under its TLS. `isHttp`: whether it still carries requests. */
export type Traffic = Readonly<{ wireBytes: number; bytesRead: number; bytesWritten: number; openMs: number; isHttp: boolean }>;

export class UnaskedBytes {
  #asked = 0;
  #requests = 0;
  #lookedMs = 0;
  /** What time has allowed. */
  readonly #allowed = { beside: 0, around: 0 };

  /** A request has come, with headers of so many bytes. */
  request(headerBytes: number): void {
    this.#asked += requestBytes + headerBytes;
    this.#requests += 1;
  }

  /** So many bytes of a body have come. */
  body(bytes: number): void {
    this.#asked += weightOfBody * bytes;
  }

  /** To be asked again and again. */
  isTooMuch({ wireBytes, bytesRead, bytesWritten, openMs, isHttp }: Traffic): boolean {
    const nowAllowed = ((openMs - this.#lookedMs) / msPerSecond) * bytesPerSecond;
    this.#lookedMs = openMs;
    const beside = isHttp ? bytesRead - this.#asked - bytesWritten : 0;
    const explained = isHttp ? recordShare * bytesRead + confirmingShare * bytesWritten : otherRecordShare * bytesRead;
    const around = wireBytes - bytesRead - explained - requestRecordBytes * this.#requests;
    const isTooMuchBeside = this.#isOver('beside', beside, nowAllowed);
    return this.#isOver('around', around, nowAllowed) || isTooMuchBeside;
  }

  #isOver(kind: 'beside' | 'around', bytes: number, nowAllowed: number): boolean {
    const left = bytes - this.#allowed[kind];
    const allowed = Math.max(0, Math.min(left, nowAllowed));
    this.#allowed[kind] += allowed;
    return left - allowed > bytesMax;
  }
}
