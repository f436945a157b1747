/**
 * How this server treats each flag of kcp's `kcp-front-proxy`. The front door finds shards by the
 * path entries of its parent cache.
 */
import { everyObjectOf, type LinkPolicy } from '../../domain/link-policy.js';
import { pathTypes } from '../../domain/path-entry.js';
import { proxyOptions } from '../options/command-options.js';
import {
  accepted,
  decidedOfList,
  ofOption,
  refusal,
  servingFlags,
  warned,
  type FlagEffect,
  type UpstreamFlag,
  type UpstreamTable,
} from './upstream-flags.js';

/** The defaults that differ from `strata proxy` when the program runs in place of kcp's program. */
export const frontProxyDefaults = { 'root-directory': '.kcp', 'secure-port': '443' } as const;

const asksNoShard = 'the front door learns from the cache above where a request goes, see --parent-urls';
const noIssuing = 'no tokens are issued here';

export const frontProxyFlags: UpstreamTable = new Map<string, UpstreamFlag>([
  ...servingFlags,
  ...Object.values(proxyOptions).map(ofOption),

  ['root-kubeconfig', warned(asksNoShard)],
  ['shards-kubeconfig', warned(asksNoShard)],

  ['requestheader-username-headers', onlyHeader('X-Remote-User')],
  ['requestheader-group-headers', onlyHeader('X-Remote-Group')],
  ['requestheader-extra-headers-prefix', onlyHeader('X-Remote-Extra-')],
  ['requestheader-uid-headers', warned('the front door passes no uid on to backends')],

  ...['service-account-jwks-uri', 'service-account-max-token-expiration'].map((name) => [name, warned(noIssuing)] as const),
  ['service-account-extend-token-expiration', warned(noIssuing, true)],
]);

/**
 * Accepts only this name, because the front door reads no other header of an authenticating proxy.
 */
function onlyHeader(name: string): UpstreamFlag {
  return decidedOfList(`must be ${name}: the front door reads no other header here`, (value): readonly FlagEffect[] =>
    value.split('\n').every((each) => each.toLowerCase() === name.toLowerCase())
      ? [accepted]
      : [refusal(`must be ${name}: the front door reads no other header here`)],
  );
}

/**
 * What a front door follows from its parent by default: path entries, and the Shards that say where
 * shards are.
 */
export const followedByFrontDoor: LinkPolicy = [everyObjectOf([...pathTypes, { group: 'core.kcp.io', resource: 'shards' }])];
