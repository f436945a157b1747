/** Requests of HTTP/1.1 as text, and a raw client that closes with its test. */
import type { ExecutionContext } from 'ava';
import { aPath, anApiExport } from '../../support/objects.js';
import { RawHttp1 } from '../../support/raw-http1.js';
import type { Place } from '../../support/raw-tls.js';

export const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`;

export function post(name: string, text = ''): string {
  const body = JSON.stringify(anApiExport({ name }, { spec: { text } }));
  return `POST ${aPath()} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

export async function aClient(t: ExecutionContext, place: Place): Promise<RawHttp1> {
  const client = await RawHttp1.open(place);
  t.teardown(() => client.destroy());
  return client;
}
