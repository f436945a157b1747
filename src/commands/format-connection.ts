/** A shard's connection in words, and how long it has lasted. */
import { formatDuration } from '../config/quantity.js';
import { unreachable } from '../domain/errors.js';
import type { ShardConnection } from '../domain/status.js';

export function formatConnection(connection: ShardConnection): string {
  switch (connection.kind) {
    case 'connected':
      return `connected ${formatDuration(connection.forMs)}`;
    case 'away':
      return `away ${formatDuration(connection.forMs)}`;
    case 'plain':
      return 'plain HTTP';
    default:
      return unreachable(connection);
  }
}
