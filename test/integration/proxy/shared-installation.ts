/**
 * What the tests of the front door share: one installation per file, and a request whose backend
 * echoes what it received.
 */
import { test } from '../../support/test.js';
import type { TestServer } from '../../support/test-server.js';
import { anInstallation, type Installation } from '../../support/proxy/a-front-door.js';
import type { Echoed } from '../../support/proxy/echo-backend.js';

/**
 * For tests that change nothing in it. One installation for each HTTP version that birch speaks; it
 * ends with the file.
 */
export function sharedInstallation(): (birchSpeaks?: 1 | 2) => Promise<Installation> {
  const closers: (() => unknown)[] = [];
  const opened = new Map<1 | 2, Promise<Installation>>();
  test.after.always('what tests share ends', async () => {
    for (const close of closers) await close();
  });
  return (birchSpeaks = 2) => {
    const installation = opened.get(birchSpeaks) ?? anInstallation({ teardown: (close) => closers.unshift(close) }, { birchSpeaks });
    opened.set(birchSpeaks, installation);
    return installation;
  };
}

/** Throws if the answer does not come from the backend. */
export async function echoed(
  door: TestServer,
  target: string,
  options: Parameters<TestServer['client']>[0] & { headers?: Record<string, string>; body?: unknown; method?: string } = {},
) {
  const { headers = {}, body, method = 'GET', ...client } = options;
  const { status, text } = await door.client(client).raw(method, target, { headers, ...(body !== undefined && { body }) });
  if (status !== 200) throw new Error(`${target}: ${status} ${text}`);
  return JSON.parse(text) as Echoed;
}
