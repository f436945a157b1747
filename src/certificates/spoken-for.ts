/**
 * The shard or client for which a certificate speaks. Such a certificate has the group `strata` and
 * one URI: `strata://shard/NAME`, `strata://cache/NAME`, `strata://reader/NAME` or
 * `strata://syncer/NAME`.
 *
 * Only this spelling is valid. Any other URI with that scheme, in any case of letters, is an
 * invalid claim, and two claims are ambiguous. In both cases the certificate speaks for nothing.
 * URIs of other schemes (SPIFFE) are ignored.
 */
import type { SpokenFor } from '../domain/caller.js';
import { parseCacheName } from '../domain/via.js';
import { parseShardName } from '../domain/shard.js';

/**
 * A URI counts only in a certificate of this group (O), because a CA may sign any requested URI.
 */
export const speakersGroup = 'strata';

const claimPattern = /^\s*strata:/i;
const spokenForPattern = /^strata:\/\/(shard|cache|reader|syncer)\/([^/]+)$/;

export function parseSpokenFor(uris: readonly string[]): SpokenFor | undefined {
  const [claim, ...others] = uris.filter((uri) => claimPattern.test(uri));
  if (claim === undefined || others.length > 0) return undefined;
  const [, kind, name = ''] = spokenForPattern.exec(claim) ?? [];
  if (kind === 'cache' || kind === 'reader' || kind === 'syncer') {
    const parsed = parseCacheName(name);
    return parsed === undefined ? undefined : { kind, name: parsed };
  }
  const shard = kind === 'shard' ? parseShardName(name) : undefined;
  return shard && { kind: 'shard', shard };
}
