/**
 * The HTTP/2 settings for a client, lower if the client may request only health; and how to offer
 * no HTTP/2.
 */
import type { IncomingMessage } from 'node:http';
import type { Settings } from 'node:http2';

const headerListBytesMax = 64 * 1024;
const windowBytes = 64 * 1024;
const anonymousStreamsMax = 10;
const anonymousHeaderBytesMax = 8 * 1024;
const anonymousWindowBytes = 16 * 1024;

export function sessionSettings(isLimited: boolean, streamsMax: number): Settings {
  return isLimited
    ? { maxConcurrentStreams: anonymousStreamsMax, maxHeaderListSize: anonymousHeaderBytesMax, initialWindowSize: anonymousWindowBytes }
    : { maxConcurrentStreams: streamsMax, maxHeaderListSize: headerListBytesMax, initialWindowSize: windowBytes };
}

/**
 * Whether a request of a client that may request only health respects that client's header limit.
 * Node enforces the limit only once the client has confirmed the settings, and never over HTTP/1.1.
 */
export function hasShortHeaders(request: IncomingMessage): boolean {
  return headerBytesOf(request) <= anonymousHeaderBytesMax;
}

export function headerBytesOf({ rawHeaders, url = '' }: IncomingMessage): number {
  return rawHeaders.reduce((sum, text) => sum + text.length, url.length);
}

/** An ALPN callback, because Node offers h2 even if ALPNProtocols omits it. */
export function withoutHttp2({ protocols }: Readonly<{ protocols: readonly string[] }>): string | undefined {
  return protocols.find((protocol) => protocol === 'http/1.1');
}
