/**
 * A TLS connection whose TCP socket is accessible, so that a test can end it in each of the ways in
 * which connections end.
 */
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import type { Certificate } from './test-authority.js';

const connectMsMax = 10_000;
const goodbyeMs = 20;

/** Who connects: a certificate, or nobody. */
export type As = Pick<Certificate, 'certificate' | 'key'> | null;

export type RawTls = Readonly<{ tcp: Socket; tls: TLSSocket }>;

/**
 * How a connection ends: with a reset, with a FIN but no TLS close_notify, or with TLS's
 * close_notify.
 */
export type Ending = 'reset' | 'fin' | 'goodbye';

export const endings: readonly Ending[] = ['reset', 'fin', 'goodbye'];

export type Place = Readonly<{ host?: string; port: number; as?: As }>;

/** `keylog`: called with each secret of the connection. */
export async function openTls(
  { host = '127.0.0.1', port, as = null }: Place,
  options: ConnectionOptions = {},
  keylog: (line: Buffer) => void = () => {},
): Promise<RawTls> {
  const tcp = connectTcp({ host, port, noDelay: true });
  tcp.on('error', () => {});
  const tls = connectTls({
    socket: tcp,
    rejectUnauthorized: false,
    ...(as === null ? {} : { cert: as.certificate, key: as.key }),
    ...options,
  });
  tls.on('keylog', keylog);
  try {
    await once(tls, 'secureConnect', { signal: AbortSignal.timeout(connectMsMax) });
  } catch (error) {
    tls.on('error', () => {});
    tls.destroy();
    tcp.destroy();
    throw error;
  }
  tls.on('error', () => {});
  return { tcp, tls };
}

export function endConnection({ tcp, tls }: RawTls, ending: Ending): void {
  switch (ending) {
    case 'reset':
      // Node 20 never closes a socket that is reset while it is shutting down.
      if (tcp.writableEnded) tls.destroy();
      else tcp.resetAndDestroy();
      return;
    case 'fin':
      // Not the TCP socket beneath it: Node 20 would read freed memory if that closes while TLS has
      // something to write.
      tls.destroy();
      return;
    case 'goodbye':
      // Like a process that closes its connection: close_notify is sent, and soon nothing can read
      // an answer to it.
      tls.end();
      setTimeout(() => tls.destroy(), goodbyeMs);
  }
}
