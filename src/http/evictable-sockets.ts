/**
 * Sockets that are closed to make room for others, the oldest first: those in their handshake,
 * without a certificate, or beyond their caller's quota.
 */
import type { Socket } from 'node:net';

/** How many of the oldest are searched for a socket that has not sent a byte. */
const examinedMax = 64;

/** The peer's end of a TCP connection; the same for a socket and for the TLS socket over it. */
export type End = Readonly<{ end: string; network: string }>;

/** Undefined if the socket has closed already. */
export function endOf({ localAddress, remoteAddress, remotePort }: Socket): End | undefined {
  if (remoteAddress === undefined) return undefined;
  return { end: `${localAddress} ${remoteAddress} ${remotePort}`, network: networkOf(remoteAddress) };
}

export class EvictableSockets {
  readonly #byEnd = new Map<string, Socket>();
  readonly #byNetwork = new Map<string, Set<string>>();

  count({ network }: End): number {
    return this.#byNetwork.get(network)?.size ?? 0;
  }

  get({ end }: End): Socket | undefined {
    return this.#byEnd.get(end);
  }

  add({ end, network }: End, socket: Socket): void {
    this.#byEnd.set(end, socket);
    const ends = this.#byNetwork.get(network) ?? new Set();
    this.#byNetwork.set(network, ends.add(end));
  }

  /** Removes the socket, unless it has been removed and another socket has the same end. */
  delete({ end, network }: End, socket: Socket | undefined = this.#byEnd.get(end)): void {
    if (socket === undefined || this.#byEnd.get(end) !== socket) return;
    this.#byEnd.delete(end);
    const ends = this.#byNetwork.get(network);
    ends?.delete(end);
    if (ends?.size === 0) this.#byNetwork.delete(network);
  }

  get sockets(): Iterable<Socket> {
    return this.#byEnd.values();
  }

  /**
   * Closes the oldest socket of a network, by default of the network with the most sockets. Prefers
   * a socket that has not sent a byte. Returns false if the network has no socket.
   */
  dropOldest(network = this.#largest()): boolean {
    let oldest: string | undefined;
    let looked = 0;
    for (const end of this.#byNetwork.get(network) ?? []) {
      oldest ??= end;
      const isSilent = this.#byEnd.get(end)?.bytesRead === 0;
      if (isSilent) oldest = end;
      if (isSilent || (looked += 1) >= examinedMax) break;
    }
    if (oldest === undefined) return false;
    const socket = this.#byEnd.get(oldest);
    this.delete({ end: oldest, network: networkOf(oldest.split(' ')[1] ?? '') });
    socket?.destroy();
    return true;
  }

  #largest(): string {
    let [largest, most] = ['', 0];
    for (const [network, { size }] of this.#byNetwork) if (size > most) [largest, most] = [network, size];
    return largest;
  }
}

/** The address, or for IPv6 its /64, because one host may use any address of its /64. */
export function networkOf(address: string): string {
  const text = address.replace(/^::ffff:(?=\d+\.)/, '');
  if (!text.includes(':')) return text;
  const [front = '', back] = text.split('::');
  const groups = front.split(':').filter((group) => group !== '');
  const missing = back === undefined ? 0 : 8 - groups.length - back.split(':').filter((group) => group !== '').length;
  return [...groups, ...Array.from({ length: missing }, () => '0')].slice(0, 4).join(':');
}
