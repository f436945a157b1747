/**
 * The status report, which `GET /services/cache/status` returns. Ages are durations, never clock
 * times, because the clocks of two machines never agree. Members are only ever added; a reader
 * ignores unknown ones.
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
import type { ShardName } from './shard.js';
import type { Via } from './via.js';

export type StatusReport = Readonly<{
  cache: Readonly<{
    id: string;
    version: string;
    epoch: number;
    resourceVersion: string;
    /** The same as /readyz. */
    ready: boolean;
  }>;
  /** Undefined: the cache runs a version without a tree. */
  tree: TreeStatus | undefined;
  /**
   * The certificates that this process uses. Also empty if the cache's version does not report
   * them.
   */
  certificates: readonly CertificateStatus[];
  shards: readonly ShardStatus[];
  /**
   * Kept names on this cache's copies, by slice and name. Also empty if the cache's version does
   * not report them.
   */
  kept: readonly KeptStatus[];
}>;

/**
 * How many objects of a slice have a kept name that was set on the copy. `name`:
 * `example.com/cordon`, or `label example.com/zone` (kept-names.ts).
 */
export type KeptStatus = Pick<SliceStatus, 'group' | 'resource' | 'identity' | 'objects'> & Readonly<{ shard: ShardName; name: string }>;

/**
 * `use`: `serving`, `client-ca`, `requestheader-ca` or `parent`. `notAfter` is from the
 * certificate. `expiresInMs` is by the cache's clock, negative once expired.
 */
export type CertificateStatus = Readonly<{
  use: string;
  file: string;
  subject: string;
  notAfter: string;
  expiresInMs: number;
}>;

/** The tree as far as this cache knows it: its neighbours, and the ids of the caches above it. */
export type TreeStatus = Readonly<{
  /** The name by which the parent knows this cache; null without a parent. */
  name: string | null;
  /** Ids of caches: this one, its parent, and so on, as far as the caches above have sent them. */
  route: readonly string[];
  /** The number of caches above this one; null while a configured parent has not sent its route. */
  hops: number | null;
  /**
   * Whether this cache knows every shard that any cache of the tree knows: every neighbour that it
   * ever had is connected, and complete as well.
   */
  complete: boolean;
  parent: ParentStatus | null;
  /** By name, including disconnected ones. */
  children: readonly ChildStatus[];
}>;

export type LinkStatus = Readonly<{
  /** The id of the cache at the other end; null if none ever connected. */
  cacheId: string | null;
  connection: LinkConnection;
  /**
   * A resourceVersion of the cache at the other end: everything that it lets through up to this
   * position is durable here. Null if there is none yet.
   */
  position: string | null;
  /** Null while the link is down, or has only just opened. */
  sending: SendingStatus | null;
  receiving: ReceivingStatus;
  /** `other`: null while unknown. */
  policies: Readonly<{ own: PolicyTexts; other: PolicyTexts | null }>;
}>;

export type LinkConnection = Exclude<ShardConnection, { kind: 'plain' }>;

export type ParentStatus = LinkStatus &
  Readonly<{
    url: string;
    /** Failed attempts in a row to connect to the parent. */
    failures: number;
    /** Why the last connection ended or failed; null if there is nothing to report. */
    message: string | null;
  }>;

/** `agent`: the child's program and version, while it is connected. */
export type ChildStatus = LinkStatus & Readonly<{ name: string; agent: string | null }>;

/** The traffic from this cache over a link. Counts are since the link opened. */
export type SendingStatus = Readonly<{
  slices: number;
  /** Slices that the other end holds completely and that changes alone keep up to date. */
  current: number;
  /** Changes of this cache that the link's sender has not examined yet. */
  behind: number;
  /** Time since the oldest unacknowledged change was sent. */
  lagMs: number;
  /** How often the other end has requested a resync. */
  resynced: number;
  /** Slices of which the other end refuses objects. */
  refused: number;
}>;

/**
 * The traffic to this cache over a link. Counts of objects and comparisons are since the link
 * opened.
 */
export type ReceivingStatus = Readonly<{
  /** Shards that the neighbour claims for an origin behind it, while the link is open. */
  claims: number;
  /** Slices of shards whose via is this link. */
  slices: number;
  current: number;
  /** Refused objects. */
  refused: number;
  /**
   * How often both ends compared a slice, how long ago they last did (null: never), and how often
   * the copies differed.
   */
  compared: number;
  comparedAgoMs: number | null;
  differed: number;
  /** Claims that were ignored. */
  claimsIgnored: number;
}>;

/** Rules as JSON text, truncated if very long. */
export type PolicyTexts = Readonly<{ up: string; down: string }>;

export type ShardStatus = Readonly<{
  shard: ShardName;
  /** The source of the shard's objects; null if the shard has no via. */
  via: Via | null;
  /**
   * The term of the pusher that has the shard; left out if the shard is written over plain HTTP, or
   * unknown.
   */
  term?: Term;
  /** Whether an operator removed the shard and nobody has claimed it since. */
  removed: boolean;
  connection: ShardConnection;
  /** How many pushers wait at this cache until the shard's pusher is gone. */
  standbys: number;
  /**
   * Types sent for the shard that this cache does not know, so that none of their objects is
   * stored. As `RESOURCE.GROUP`, a declared one with `:IDENTITY`; the first hundred.
   */
  unknownTypes: readonly string[];
  slices: readonly SliceStatus[];
}>;

/**
 * Whether the pusher of a shard is connected, and how long that has been known. The pusher is at
 * this cache, or at one that reports it over a link.
 */
export type ShardConnection =
  /** `peer`: an address, or the name or id of the cache through which the shard is reached. */
  Readonly<{ kind: 'connected'; forMs: number; peer: string }> | Readonly<{ kind: 'away'; forMs: number }> | Readonly<{ kind: 'plain' }>;

/**
 * `removes`: the number of objects. The removal happens in `releaseInMs`, or when an operator
 * confirms it.
 */
export type HeldRemovalStatus = Readonly<{ removes: number; forMs: number; releaseInMs: number }>;

export type SliceStatus = Readonly<{
  group: string;
  resource: string;
  identity: string;
  everSynced: boolean;
  /**
   * Whether this cache has every object that the shard had `lagMs` ago, so that an object that is
   * not here does not exist.
   */
  whole: boolean;
  /**
   * Whether the shard's present term synced the slice, an earlier term did, or none. `assumed`: the
   * shard's plain writer sends no `end`.
   */
  syncedIn: 'this-term' | 'earlier' | 'never' | 'assumed';
  /**
   * Whether changes alone keep the slice up to date over its link; null if the shard's via is no
   * link.
   */
  current: boolean | null;
  objects: number;
  bytes: number;
  /** Equal in all caches with the same objects; null if no cache reports it. */
  digest: string | null;
  /** Null if the slice never changed. */
  changedAgoMs: number | null;
  /**
   * The age of the pusher's oldest change that is not durable at the cache it pushes to; null if
   * nobody reports it.
   */
  lagMs: number | null;
  /** Whether the pusher is connected to its source; null if nobody reports it. */
  sourceConnected: boolean | null;
  /** A held removal of much of the slice; null if there is none. */
  held: HeldRemovalStatus | null;
}>;
