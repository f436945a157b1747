/** Readers to test with, closed with their test, and objects for them to look up. */
import type { ExecutionContext } from 'ava';
import { openCacheReader, type CacheReader, type LookupBounds, type ObjectRef } from '../../../src/client.js';
import type { PushedObject } from '../../../src/frames/frame.js';
import { pushedObject, type PusherCertificate, type PushTarget } from '../raw-pusher.js';

export function aRef(ref: Partial<ObjectRef> = {}): ObjectRef {
  return { group: 'apis.kcp.io', version: 'v1alpha2', resource: 'apiexports', cluster: 'acme', name: 'one', ...ref };
}

/**
 * A busy machine takes seconds for an answer. A reader that gets none in time says that it knows
 * nothing, which only other tests check.
 */
export const patience: Partial<LookupBounds> = { timeoutMs: 60_000, freshnessTimeoutMs: 60_000 };

/** By default the reader has a master's certificate and uses the server's own URL. */
export function aReader(
  t: ExecutionContext,
  server: PushTarget,
  { cache = server.url, as = server.master, bounds = {} }: { cache?: string; as?: PusherCertificate; bounds?: Partial<LookupBounds> } = {},
): CacheReader {
  const { certificate, key } = as;
  const reader = openCacheReader({ cache, identity: { ca: server.certificate, certificate, key }, bounds: { ...patience, ...bounds } });
  t.teardown(() => reader.close());
  return reader;
}

/** An APIExport whose logical cluster has that canonical path. */
export function exportAt(path: string, name = 'one', cluster = 'acme'): PushedObject {
  const metadata = { name, uid: `uid-of-${name}`, annotations: { 'kcp.io/path': path } };
  return pushedObject({ apiVersion: 'apis.kcp.io/v1alpha2', kind: 'APIExport', metadata, spec: {} }, cluster);
}

/** The error that the call throws, as `kind status reason`; fails the test if it throws none. */
export async function faultOf(t: ExecutionContext, asked: Promise<unknown>): Promise<string> {
  const { kind, status, reason } = (await t.throwsAsync(asked)) as Error & { kind?: string; status?: number; reason?: string };
  return `${kind} ${status} ${reason}`.trim();
}
