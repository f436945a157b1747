/**
 * Connections to a shard that are kept and used again. A shard learns who asks when a connection is made, so one is used only by requests
 * with the certificates that it was made with. Others are closed as soon as they are idle; a watch on one of them goes on until it ends.
 */
import { Agent } from 'node:https';
import type { Credentials, ShardAccess } from './shard-access.js';

export class KeptConnections {
  readonly #access: ShardAccess;
  readonly #probeAfterMs: number;
  #identity = '';
  #agent: Agent | undefined;

  /** `probeAfterMs`: after how long without a byte TCP itself asks whether the peer is there. */
  constructor({ access }: { access: ShardAccess }, { probeAfterMs }: { probeAfterMs: number }) {
    this.#access = access;
    this.#probeAfterMs = probeAfterMs;
  }

  /** For one request with these credentials. */
  agentFor({ ca, certificate, key }: Credentials): Agent {
    const identity = JSON.stringify([ca, certificate, key]);
    if (this.#agent !== undefined && identity === this.#identity) return this.#agent;
    if (this.#agent !== undefined) retire(this.#agent);
    const { insecure, serverName } = this.#access;
    this.#identity = identity;
    this.#agent = new Agent({
      keepAlive: true,
      keepAliveMsecs: this.#probeAfterMs,
      rejectUnauthorized: !insecure,
      ...(serverName !== undefined && { servername: serverName }),
      ...(ca !== undefined && { ca }),
      ...(certificate !== undefined && { cert: certificate }),
      ...(key !== undefined && { key }),
    });
    return this.#agent;
  }

  close(): void {
    this.#agent?.destroy();
  }
}

function retire(agent: Agent): void {
  agent.maxFreeSockets = 0;
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}
