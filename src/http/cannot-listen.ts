/**
 * Explains why a server cannot listen, and names the option that helps. The defaults are those of
 * kcp, which may run on the same machine.
 */
import { isIPv6 } from 'node:net';
import { CacheError } from '../domain/errors.js';

const advice: ReadonlyMap<unknown, string> = new Map([
  ['EADDRINUSE', 'another program listens there; choose another port with --secure-port (STRATA_SECURE_PORT)'],
  ['EACCES', 'this user may not open that port; choose one from 1024 on with --secure-port (STRATA_SECURE_PORT)'],
  ['EADDRNOTAVAIL', 'this machine does not have that address; choose another with --bind-address (STRATA_BIND_ADDRESS)'],
]);
/** kcp's default port. */
const kcpPort = 6443;

export function cannotListen(
  cause: unknown,
  { bindAddress, securePort }: Readonly<{ bindAddress: string; securePort: number }>,
): CacheError {
  const at = `${isIPv6(bindAddress) ? `[${bindAddress}]` : bindAddress}:${securePort}`;
  const code: unknown = cause instanceof Error ? Reflect.get(cause, 'code') : undefined;
  const ofKcp = code === 'EADDRINUSE' && securePort === kcpPort ? ` (${kcpPort} is also kcp's own)` : '';
  const why = advice.get(code);
  return new CacheError(`cannot listen at ${at}${why === undefined ? '' : `: ${why}${ofKcp}`}`, { cause });
}
