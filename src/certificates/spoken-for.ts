/**
 * Whom a certificate speaks for, by what it contains: the group `strata` and one URI, `strata://shard/NAME`,
 * `strata://cache/NAME`, `strata://reader/NAME` or `strata://syncer/NAME`.
 *
 * There is one spelling. Anything else that begins with that scheme, in upper or lower case, is a claim that cannot be understood, and of
 * two claims nobody knows which is meant: then the certificate speaks for nothing. URIs of other schemes (SPIFFE) do not count.
 */
import type { SpokenFor } from '../domain/caller.js';
import { parseCacheName } from '../domain/cache-name.js';
import { parseShardName } from '../domain/shard.js';

/** The group (O) without which a URI gives nothing: a CA may sign any URI that people ask for. */
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
