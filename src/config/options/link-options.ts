/**
 * The options of the links that join caches to a tree: the URLs of the parent, the certificate and
 * name that this cache shows the parent, and limits. Policies decide which objects pass a link.
 * They have their own form, and only the configuration file can set them (config-file.ts).
 */
import { parseCacheName } from '../../domain/via.js';
import { count, duration, file, name, several } from './option.js';

export const linkOptions = {
  parentUrls: several({
    flag: 'parent-urls',
    yaml: 'parent.urls',
    placeholder: 'urls',
    acceptedValues: 'URLs of one cache without a path, such as https://localhost:6443, separated by commas',
    parse: parseCacheUrls,
    help: 'The URLs of the parent, tried in turn; without any, this cache is a root.',
  }),
  parentCaFile: file({
    flag: 'parent-ca-file',
    yaml: 'parent.caFile',
    help: 'The CAs (PEM) that sign the certificate of the parent; without it those that Node trusts.',
  }),
  parentCertFile: file({
    flag: 'parent-cert-file',
    yaml: 'parent.certFile',
    help: 'The client certificate (PEM) to show to the parent; it names this cache by the URI strata://cache/NAME.',
  }),
  parentKeyFile: file({ flag: 'parent-key-file', yaml: 'parent.keyFile', help: 'The key (PEM) of that client certificate.' }),
  cacheName: name({
    flag: 'cache-name',
    yaml: 'parent.cacheName',
    acceptedValues: 'the name of a cache: lower case letters, digits and dashes, at most 63',
    parse: parseCacheName,
    help: 'The name of this cache at its parent; needed only if the client certificate names no cache, as one of system:masters.',
  }),
  parentReadyGraceMs: duration({
    flag: 'parent-ready-grace',
    yaml: 'parent.readyGrace',
    default: '10s',
    min: '0s',
    max: '1h',
    help: 'How long a cache that starts empty waits for the objects of its parent before it is ready without them.',
  }),
  parentHoldMs: duration({
    flag: 'parent-hold',
    yaml: 'parent.hold',
    default: '30s',
    min: '0s',
    max: '30d',
    help: 'How long a shard that is written at another cache must be away before a standby, or a client that writes plain HTTP, may take it over here.',
  }),
  linkShardsPerChildMax: count({
    flag: 'link-shards-per-child-max',
    yaml: 'link.shardsPerChildMax',
    default: '1000',
    min: 1,
    max: 100_000,
    help: 'How many shards one child may have claimed here; claims of further ones are ignored.',
  }),
  linkChildrenMax: count({
    flag: 'link-children-max',
    yaml: 'link.childrenMax',
    default: '1000',
    min: 0,
    max: 100_000,
    help: 'How many children may be connected; further ones are answered 503.',
  }),
  linkDigestIntervalMs: duration({
    flag: 'link-digest-interval',
    yaml: 'link.digestInterval',
    default: '10m',
    min: '1s',
    max: '24h',
    help: 'How often both ends of a link compare what they hold.',
  }),
  policyPollMs: duration({
    flag: 'policy-poll',
    yaml: 'link.policyPoll',
    default: '10s',
    min: '100ms',
    max: '1h',
    help: 'How often the server reads the configuration file again for changed link policies.',
  }),
} as const;

/** The origin of a cache's URL, which is https and without a path; undefined for any other text. */
export function parseCacheUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, origin, pathname, search, hash, username, password } = new URL(text);
  const isBare = pathname === '/' && search === '' && hash === '' && username === '' && password === '';
  return protocol === 'https:' && isBare ? origin : undefined;
}

/** The origins without duplicates. Undefined if a text is no URL of a cache. */
export function parseCacheUrls(texts: readonly string[]): readonly string[] | undefined {
  const urls = texts.map(parseCacheUrl);
  const known = urls.filter((url) => url !== undefined);
  return known.length === urls.length ? [...new Set(known)] : undefined;
}
