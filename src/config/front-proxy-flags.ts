/** What the flags of kcp's own `kcp-front-proxy` do here. Shards are found by the entries of the cache above, and tokens are theirs to check. */
import { proxyOptions } from './command-options.js';
import {
  accepted,
  decided,
  ofOption,
  refusal,
  servingFlags,
  warned,
  warning,
  type Fate,
  type UpstreamFlag,
  type UpstreamTable,
} from './upstream-flags.js';

/** Where defaults differ from our own when started in upstream's place. */
export const frontProxyDefaults = { 'root-directory': '.kcp', 'secure-port': '443' } as const;

const asksNoShard = 'where a request goes is read from the cache above, see --parent-urls';
const shardsCheck = 'tokens are checked by shards, which need the same flag';
const noProfiler = 'there is no profiler here';

export const frontProxyFlags: UpstreamTable = new Map<string, UpstreamFlag>([
  ...servingFlags,
  ...Object.values(proxyOptions).map(ofOption),

  ['root-kubeconfig', warned(asksNoShard)],
  ['shards-kubeconfig', warned(asksNoShard)],
  ['profiler-address', decided(`accepted: ${noProfiler}`, (value) => [value === '' ? accepted : warning(noProfiler)])],

  ['requestheader-username-headers', onlyHeader('X-Remote-User')],
  ['requestheader-group-headers', onlyHeader('X-Remote-Group')],
  ['requestheader-extra-headers-prefix', onlyHeader('X-Remote-Extra-')],
  ['requestheader-uid-headers', warned('nobody is passed on by a uid')],

  ...[
    'api-audiences',
    'authentication-config',
    'authentication-token-webhook-cache-ttl',
    'authentication-token-webhook-config-file',
    'authentication-token-webhook-version',
    'oidc-ca-file',
    'oidc-client-id',
    'oidc-groups-claim',
    'oidc-groups-prefix',
    'oidc-issuer-url',
    'oidc-required-claim',
    'oidc-signing-algs',
    'oidc-username-claim',
    'oidc-username-prefix',
    'service-account-issuer',
    'service-account-jwks-uri',
    'service-account-key-file',
    'service-account-max-token-expiration',
    'token-auth-file',
  ].map((name) => [name, warned(shardsCheck)] as const),
  ...['service-account-extend-token-expiration', 'service-account-lookup'].map((name) => [name, warned(shardsCheck, true)] as const),
]);

/** Authenticating proxies are read by these names alone. */
function onlyHeader(name: string): UpstreamFlag {
  return decided(`${name}, by which authenticating proxies are read here`, (value): readonly Fate[] =>
    value.toLowerCase() === name.toLowerCase() ? [accepted] : [refusal(`authenticating proxies are read by ${name} alone`)],
  );
}
