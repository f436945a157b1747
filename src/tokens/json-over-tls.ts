/** A request over TLS whose answer is a JSON object. It follows no redirects. */
import { request } from 'node:https';
import { isObject, type Members } from '../domain/base/members.js';

/** `ca`, `cert`, `key`: PEM. Without `ca`, the authorities that Node trusts count. */
export type TlsAccess = Readonly<{
  ca?: string | undefined;
  cert?: string | undefined;
  key?: string | undefined;
  /** The name that the server's certificate must have, if it is not the one in the URL. */
  servername?: string | undefined;
  authorization?: string | undefined;
}>;

const timeoutMs = 10_000;
const bytesMax = 1024 * 1024;

/**
 * Sends GET, or POST with a body. Throws an error whose message says what is wrong and quotes
 * nothing of the body.
 */
export function fetchJson(url: string, { authorization, ...tls }: TlsAccess, body?: string): Promise<Members> {
  const method = body === undefined ? 'GET' : 'POST';
  const headers = {
    accept: 'application/json',
    ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
    ...(authorization !== undefined && { authorization }),
  };
  return new Promise((resolve, reject) => {
    const asked = request(url, { ...tls, method, headers, agent: false, signal: AbortSignal.timeout(timeoutMs) });
    const fail = (why: string): void => {
      reject(new Error(`${method} ${url}: ${why}`));
      asked.destroy();
    };
    asked.once('error', (error) => fail(error.message));
    asked.once('upgrade', (_response, socket) => {
      socket.destroy();
      fail('status 101');
    });
    asked.once('close', () => fail('the connection was closed'));
    asked.once('response', (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > bytesMax) fail(`more than ${bytesMax} bytes`);
        else chunks.push(chunk);
      });
      response.once('error', (error) => fail(error.message));
      response.once('end', () => {
        const { statusCode = 0 } = response;
        if (statusCode < 200 || statusCode > 299) return fail(`status ${statusCode}`);
        const value = parsed(Buffer.concat(chunks));
        return value === undefined ? fail('no JSON object') : resolve(value);
      });
    });
    asked.end(body);
  });
}

function parsed(bytes: Buffer): Members | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
