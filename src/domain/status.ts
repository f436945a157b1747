/**
 * The status report, which `GET /services/cache/status` returns. Ages are durations, never clock
 * times, because the clocks of two machines never agree. Members are only ever added: `later` gives
 * the value that a reader uses if an older cache does not send the member.
 *
 *  {"cache": {"id": "c-1", "version": "0.1.0", "epoch": 1234567, "resourceVersion": "…",
 *     "ready": true},
 *   "tree": {"name": "eu-1", "route": ["c-1", "c-0"], "hops": 1, "complete": true,
 *     "parent": {"url": "https://root:6443", "failures": 0, "message": null, "cacheId": "c-0",
 *       "connection": {"kind": "connected", "forMs": 192000, "peer": "root:6443"}, "position": "…",
 *       "sending": {"slices": 14, "current": 14, "behind": 0, "lagMs": 0, "resynced": 0,
 *         "refused": 0},
 *       "receiving": {"claims": 2, "slices": 3, "current": 3, "refused": 0, "compared": 3,
 *         "comparedAgoMs": 41000, "differed": 0, "claimsIgnored": 0},
 *       "policies": {"own": {"up": "[…]", "down": "[…]"}, "other": {"up": "[…]", "down": "[…]"}}},
 *     "children": [{"name": "west", "agent": "strata 0.1.0", "cacheId": "c-7", …}]},
 *   "certificates": [{"use": "serving", "file": "/etc/strata/tls.crt", "subject": "CN=localhost",
 *     "notAfter": "2026-12-24T00:00:00.000Z", "expiresInMs": 2764800000}],
 *   "shards": [{"shard": "amber", "via": "local", "term": 1763700000000, "removed": false,
 *     "connection": {"kind": "connected", "forMs": 192000, "peer": "10.0.0.7"},
 *     "slices": [{"group": "apis.kcp.io", "resource": "apiexports", "identity": "",
 *       "everSynced": true, "whole": true, "syncedIn": "this-term", "current": null,
 *       "objects": 12, "bytes": 30211, "digest": "…", "changedAgoMs": 900, "lagMs": 3,
 *       "sourceConnected": true, "held": null}]}],
 *   "kept": [{"shard": "amber", "group": "core.kcp.io", "resource": "shards", "identity": "",
 *     "name": "example.com/cordon", "objects": 1}]}
 */
import type { Term } from './push.js';
import { later, list, number, object, oneOf, optional, orNull, parsed, text, truth, variants, type Infer } from './schema.js';
import { parseShardName } from './shard.js';
import { childNeighbour, childOf, parseCacheName, type Via } from './via.js';

const shardName = parsed('the name of a shard', parseShardName);

const connectedOrAway = { connected: { forMs: number, peer: text }, away: { forMs: number } };

/**
 * Whether the pusher of a shard is connected, and how long that has been known. The pusher is at
 * this cache, or at one that reports it over a link. `peer`: an address, or the name or id of the
 * cache through which the shard is reached.
 */
const shardConnection = variants('a connection', { ...connectedOrAway, plain: {} });
export type ShardConnection = Infer<typeof shardConnection>;

/**
 * `removes`: the number of objects. The removal happens in `releaseInMs`, or when an operator
 * confirms it.
 */
const heldRemoval = object({ removes: number, forMs: number, releaseInMs: number });
export type HeldRemovalStatus = Infer<typeof heldRemoval>;

const sliceStatus = object({
  group: text,
  resource: text,
  identity: text,
  everSynced: truth,
  /**
   * Whether this cache has every object that the shard had `lagMs` ago, so that an object that is
   * not here does not exist.
   */
  whole: later(truth, false),
  /**
   * Whether the shard's present term synced the slice, an earlier term did, or none. `assumed`: the
   * shard's plain writer sends no `end`.
   */
  syncedIn: oneOf('how a slice was synced', ['this-term', 'earlier', 'never', 'assumed']),
  /**
   * Whether changes alone keep the slice up to date over its link; null if the shard's via is no
   * link.
   */
  current: later(orNull(truth), null),
  objects: number,
  bytes: number,
  /** Equal in all caches with the same objects; null if no cache reports it. */
  digest: later(orNull(text), null),
  /** Null if the slice never changed. */
  changedAgoMs: orNull(number),
  /**
   * The age of the pusher's oldest change that is not durable at the cache it pushes to; null if
   * nobody reports it.
   */
  lagMs: orNull(number),
  /** Whether the pusher is connected to its source; null if nobody reports it. */
  sourceConnected: orNull(truth),
  /** A held removal of much of the slice; null if there is none. */
  held: later(orNull(heldRemoval), null),
});
export type SliceStatus = Infer<typeof sliceStatus>;

const shardStatus = object({
  shard: shardName,
  /** The source of the shard's objects; null if the shard has no via. */
  via: later(orNull(parsed('a via', parseVia)), null),
  /**
   * The term of the pusher that has the shard; left out if the shard is written over plain HTTP, or
   * unknown.
   */
  term: optional<Term>(number),
  /** Whether an operator removed the shard and nobody has claimed it since. */
  removed: truth,
  connection: shardConnection,
  /** How many pushers wait at this cache until the shard's pusher is gone. */
  standbys: later(number, 0),
  /**
   * Types sent for the shard that this cache does not know, so that none of their objects is
   * stored. Each is `RESOURCE.GROUP`, with `:IDENTITY` if it is declared. At most a hundred.
   */
  unknownTypes: later(list(text), []),
  slices: list(sliceStatus),
});
export type ShardStatus = Infer<typeof shardStatus>;

/**
 * How many objects of a slice have a kept name that was set on the copy. `name`:
 * `example.com/cordon`, or `label example.com/zone` (kept-names.ts).
 */
const keptStatus = object({ shard: shardName, group: text, resource: text, identity: text, name: text, objects: number });
export type KeptStatus = Infer<typeof keptStatus>;

/**
 * `use`: `serving`, `client-ca`, `requestheader-ca` or `parent`. `notAfter` is from the
 * certificate. `expiresInMs` is by the cache's clock, negative once expired.
 */
const certificateStatus = object({ use: text, file: text, subject: text, notAfter: text, expiresInMs: number });
export type CertificateStatus = Infer<typeof certificateStatus>;

const linkConnection = variants('a connection', connectedOrAway);
export type LinkConnection = Infer<typeof linkConnection>;

/** The traffic from this cache over a link. Counts are since the link opened. */
const sendingStatus = object({
  slices: number,
  /** Slices that the other end holds completely and that changes alone keep up to date. */
  current: number,
  /** Changes of this cache that the link's sender has not examined yet. */
  behind: number,
  /** Time since the oldest unacknowledged change was sent. */
  lagMs: number,
  /** How often the other end has requested a resync. */
  resynced: number,
  /** Slices of which the other end refuses objects. */
  refused: number,
});
export type SendingStatus = Infer<typeof sendingStatus>;

/**
 * The traffic to this cache over a link. Counts of objects and comparisons are since the link
 * opened.
 */
const receivingStatus = object({
  /** Shards that the neighbour claims for an origin behind it, while the link is open. */
  claims: later(number, 0),
  /** Slices of shards whose via is this link. */
  slices: number,
  current: number,
  /** Refused objects. */
  refused: number,
  /**
   * How often both ends compared a slice, how long ago they last did (null: never), and how often
   * the copies differed.
   */
  compared: number,
  comparedAgoMs: orNull(number),
  differed: number,
  /** Claims that were ignored. */
  claimsIgnored: number,
});
export type ReceivingStatus = Infer<typeof receivingStatus>;

/** Rules as JSON text, truncated if very long. */
const policyTexts = object({ up: text, down: text });
export type PolicyTexts = Infer<typeof policyTexts>;

const ofLink = {
  /** The id of the cache at the other end; null if none ever connected. */
  cacheId: orNull(text),
  connection: linkConnection,
  /**
   * A resourceVersion of the cache at the other end: everything that crosses the link up to this
   * position is durable here. Null if there is none yet.
   */
  position: orNull(text),
  /** Null while the link is down, or has only just opened. */
  sending: orNull(sendingStatus),
  receiving: receivingStatus,
  /** `other`: null while unknown. */
  policies: object({ own: policyTexts, other: orNull(policyTexts) }),
};
const linkStatus = object(ofLink);
export type LinkStatus = Infer<typeof linkStatus>;

const parentStatus = object({
  url: text,
  /** Failed attempts in a row to connect to the parent. */
  failures: number,
  /** Why the last connection ended or failed; null if there is nothing to report. */
  message: orNull(text),
  ...ofLink,
});
export type ParentStatus = Infer<typeof parentStatus>;

/** `agent`: the child's program and version, while it is connected. */
const childStatus = object({ name: text, agent: orNull(text), ...ofLink });
export type ChildStatus = Infer<typeof childStatus>;

/** The tree as far as this cache knows it: its neighbours, and the ids of the caches above it. */
const treeStatus = object({
  /** The name by which the parent knows this cache; null without a parent. */
  name: orNull(text),
  /** Ids of caches: this one, its parent, and so on, as far as the caches above have sent them. */
  route: list(text),
  /** The number of caches above this one; null while a configured parent has not sent its route. */
  hops: orNull(number),
  /**
   * Whether this cache knows every shard that any cache of the tree knows: every neighbour that it
   * ever had is connected, and complete as well.
   */
  complete: later(truth, false),
  parent: orNull(parentStatus),
  /** By name, including disconnected ones. */
  children: list(childStatus),
});
export type TreeStatus = Infer<typeof treeStatus>;

const statusReport = object({
  /** `ready`: the same as /readyz. */
  cache: object({ id: text, version: text, epoch: number, resourceVersion: text, ready: truth }),
  /** Undefined: the cache runs a version without a tree. */
  tree: optional(treeStatus),
  /**
   * The certificates that this process uses. Also empty if the cache's version does not report
   * them.
   */
  certificates: later(list(certificateStatus), []),
  shards: list(shardStatus),
  /**
   * Kept names on this cache's copies, by slice and name. Also empty if the cache's version does
   * not report them.
   */
  kept: later(list(keptStatus), []),
});
export type StatusReport = Infer<typeof statusReport>;

/** Parses the report of a cache of this version, an older or a newer one. Throws CacheError. */
export function parseStatusReport(report: string): StatusReport {
  return statusReport(JSON.parse(report));
}

function parseVia(value: string): Via | undefined {
  if (value === 'local' || value === 'parent') return value;
  const name = parseCacheName(childOf(value) ?? '');
  return name === undefined ? undefined : childNeighbour(name);
}
