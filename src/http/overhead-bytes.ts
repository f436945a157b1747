/**
 * Counts the bytes that a peer sends besides its requests. Node reads megabytes of them in one turn
 * of the event loop, which delays everybody.
 *
 * There are two kinds, each bounded by `bytesMax`, plus `bytesPerSecond` while such bytes arrive.
 * Time without such bytes allows no more of them later.
 * - Frames of HTTP/2 that request nothing, and empty lines between HTTP/1.1 requests. The peer
 *   may also send as many as it receives, because it confirms what it reads.
 * - TLS overhead: key updates, and records with one byte of data. Such bytes cost a hundred times
 *   as much as others, so only a small overhead is allowed for requests and answers.
 */
const bytesMax = 256 * 1024;
const bytesPerSecond = 8 * 1024;
/** The allowance for each request: bytes besides its headers and body, and TLS overhead. */
const requestBytes = 1024;
const requestRecordBytes = 256;
/**
 * The allowance for each byte of a body. Short DATA frames may add as many bytes as their data, and
 * part of a body may arrive after the answer.
 */
const weightOfBody = 3;
/**
 * The TLS overhead that is allowed for each byte read, in records of 700 bytes, and for confirming
 * each byte sent.
 */
const recordShare = 0.03;
const confirmingShare = 0.01;
/**
 * The TLS overhead that is allowed for each byte read once the connection is no longer HTTP. The
 * new protocol counts its own bytes.
 */
const otherRecordShare = 4;
const msPerSecond = 1000;

/**
 * Bytes since the connection was opened. `wireBytes`: read from the socket under the TLS socket.
 * `isHttp`: whether the connection still carries requests.
 */
export type Traffic = Readonly<{ wireBytes: number; bytesRead: number; bytesWritten: number; openMs: number; isHttp: boolean }>;

export class OverheadBytes {
  #asked = 0;
  #requests = 0;
  #checkedMs = 0;
  /** How many bytes of each kind the elapsed time has allowed. */
  readonly #allowed = { beside: 0, around: 0 };

  request(headerBytes: number): void {
    this.#asked += requestBytes + headerBytes;
    this.#requests += 1;
  }

  body(bytes: number): void {
    this.#asked += weightOfBody * bytes;
  }

  /** Must be called at regular intervals. */
  isTooMuch({ wireBytes, bytesRead, bytesWritten, openMs, isHttp }: Traffic): boolean {
    const nowAllowed = ((openMs - this.#checkedMs) / msPerSecond) * bytesPerSecond;
    this.#checkedMs = openMs;
    const nonRequestBytes = isHttp ? bytesRead - this.#asked - bytesWritten : 0;
    const explained = isHttp ? recordShare * bytesRead + confirmingShare * bytesWritten : otherRecordShare * bytesRead;
    const tlsBytes = wireBytes - bytesRead - explained - requestRecordBytes * this.#requests;
    const isTooMuchBeside = this.#isOver('beside', nonRequestBytes, nowAllowed);
    return this.#isOver('around', tlsBytes, nowAllowed) || isTooMuchBeside;
  }

  #isOver(kind: 'beside' | 'around', bytes: number, nowAllowed: number): boolean {
    const left = bytes - this.#allowed[kind];
    const allowed = Math.max(0, Math.min(left, nowAllowed));
    this.#allowed[kind] += allowed;
    return left - allowed > bytesMax;
  }
}
