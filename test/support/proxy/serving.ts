import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo, Server } from 'node:net';
import type { TestAuthority } from '../test-authority.js';
import type { Teardown } from '../test-server.js';

/**
 * TLS options of a backend: its certificate, and the authority whose certificates it requires of
 * callers.
 */
export async function serving(authority: TestAuthority): Promise<{ cert: string; key: string; ca: Buffer; requestCert: true }> {
  const { certificate, key } = authority.issue({
    user: 'backend',
    groups: [],
    hosts: ['127.0.0.1'],
    usages: ['server'],
  });
  return { cert: certificate, key, ca: readFileSync(authority.certificateFile), requestCert: true };
}

export async function portOf(t: Teardown, server: Pick<Server, 'listen' | 'address' | 'close'>): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server as Server, 'listening');
  t.teardown(() => void server.close());
  return (server.address() as AddressInfo).port;
}
