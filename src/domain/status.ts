/**
 * What `GET /services/cache/status` answers: which cache this is, its neighbours in the tree, and how fresh each shard's part of
 * it is. Ages are durations, never clock times, because the clocks of two machines never agree. Members are only ever added; a reader
 * ignores what it does not know.
 *
 *   {"cache": {"id": "c-1", "version": "0.1.0", "epoch": 1234567, "resourceVersion": "…", "ready": true},
 *    "tree": {"name": "eu-1", "route": ["c-1", "c-0"], "hops": 1, "complete": true,
 *             "parent": {"url": "https://root:6443", "failures": 0, "message": null, "cacheId": "c-0",
 *                        "connection": {"kind": "connected", "forMs": 192000, "peer": "root:6443"}, "position": "…",
 *                        "sending": {"slices": 14, "current": 14, "behind": 0, "lagMs": 0, "resynced": 0, "refused": 0},
 *                        "receiving": {"claims": 2, "slices": 3, "current": 3, "refused": 0, "compared": 3, "comparedAgoMs": 41000, "differed": 0,
 *                                      "unheard": 0},
 *                        "policies": {"own": {"up": "[…]", "down": "[…]"}, "other": {"up": "[…]", "down": "[…]"}}},
 *             "children": [{"name": "west", "agent": "strata 0.1.0", "cacheId": "c-7", …}]},
 *    "certificates": [{"use": "serving", "file": "/etc/strata/tls.crt", "subject": "CN=localhost", "notAfter": "2026-12-24T00:00:00.000Z",
 *                      "expiresInMs": 2764800000}],
 *    "shards": [{"shard": "amber", "via": "local", "term": 1763700000000, "removed": false,
 *                "connection": {"kind": "connected", "forMs": 192000, "peer": "10.0.0.7"},
 *                "slices": [{"group": "apis.kcp.io", "resource": "apiexports", "identity": "", "everSynced": true, "whole": true,
 *                            "syncedIn": "this-term", "current": null, "objects": 12, "bytes": 30211, "digest": "…", "changedAgoMs": 900, "lagMs": 3,
 *                            "sourceConnected": true, "held": null}]}],
 *    "kept": [{"shard": "amber", "group": "core.kcp.io", "resource": "shards", "identity": "", "name": "example.com/cordon", "objects": 1}]}
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
    /** What /readyz answers. */
    ready: boolean;
  }>;
  /** Undefined: the cache is of a version without a tree. */
  tree: TreeStatus | undefined;
  /** The certificates that this process uses. Empty also where the cache's version does not report them. */
  certificates: readonly CertificateStatus[];
  shards: readonly ShardStatus[];
  /** What is kept on copies here, of each slice and name. Empty also where the cache's version does not report them. */
  kept: readonly KeptStatus[];
}>;

/** How many objects of a slice have a name that was set on the copy: `example.com/cordon`, or `label example.com/zone` (kept-names.ts). */
export type KeptStatus = Pick<SliceStatus, 'group' | 'resource' | 'identity' | 'objects'> & Readonly<{ shard: ShardName; name: string }>;

/** `use`: `serving`, `client-ca`, `requestheader-ca` or `parent`. `notAfter` is from the certificate; `expiresInMs` by the cache's clock, negative once expired. */
export type CertificateStatus = Readonly<{
  use: string;
  file: string;
  subject: string;
  notAfter: string;
  expiresInMs: number;
}>;

/** The tree as far as this cache knows it: its neighbours, and the ids above it. */
export type TreeStatus = Readonly<{
  /** How this cache is known to its parent; null when it has none. */
  name: string | null;
  /** Ids of caches: this one, its parent, and so on, as far as those above have sent them. */
  route: readonly string[];
  /** How many of them are above this one; null while there is a parent that has not sent its route. */
  hops: number | null;
  /** Whether every shard is known here that any cache of the tree knows: all neighbours that it ever had are connected, and complete too. */
  complete: boolean;
  parent: ParentStatus | null;
  /** In the order of their names, those that are away included. */
  children: readonly ChildStatus[];
}>;

export type LinkStatus = Readonly<{
  /** Of the cache at the other end; null while none was ever there. */
  cacheId: string | null;
  connection: LinkConnection;
  /** A resourceVersion of that cache: all that it lets through up to there is durable here. Null: there is none yet. */
  position: string | null;
  /** Null while the link is down, or has only just been opened. */
  sending: SendingStatus | null;
  receiving: ReceivingStatus;
  /** `other`: null while it is not known. */
  policies: Readonly<{ own: PolicyTexts; other: PolicyTexts | null }>;
}>;

export type LinkConnection = Exclude<ShardConnection, { kind: 'plain' }>;

export type ParentStatus = LinkStatus &
  Readonly<{
    url: string;
    /** In a row, while the parent is away. */
    failures: number;
    /** Why the last connection ended or was never made; null while there is nothing to report. */
    message: string | null;
  }>;

/** `agent`: its program and version, while it is connected. */
export type ChildStatus = LinkStatus & Readonly<{ name: string; agent: string | null }>;

/** What goes over a link from here. Counts are since the link was opened. */
export type SendingStatus = Readonly<{
  slices: number;
  /** Those that the other end has all of, and that changes alone keep up. */
  current: number;
  /** Changes of this cache that were not looked at yet for this link. */
  behind: number;
  /** How long ago the oldest change was sent that is not acknowledged. */
  lagMs: number;
  /** How often the other end has asked for a resync. */
  resynced: number;
  /** Slices of which the other end refuses something. */
  refused: number;
}>;

/** What comes over a link. Counts of objects and comparisons are since the link was opened. */
export type ReceivingStatus = Readonly<{
  /** Shards that it claims for an origin behind it, as long as it is open. */
  claims: number;
  /** Of shards whose via is this link. */
  slices: number;
  current: number;
  /** Objects that were refused. */
  refused: number;
  /** How often what both ends hold of a slice was compared, how long ago last (null: never), and how often it differed. */
  compared: number;
  comparedAgoMs: number | null;
  differed: number;
  /** Claims of shards that were ignored. */
  unheard: number;
}>;

/** Rules as JSON text, cut off where they are very long. */
export type PolicyTexts = Readonly<{ up: string; down: string }>;

export type ShardStatus = Readonly<{
  shard: ShardName;
  /** Where its objects come from; null when it is nobody's. */
  via: Via | null;
  /** Of the pusher that has the shard; left out when it is written over plain HTTP, or unknown. */
  term?: Term;
  /** Whether an operator removed it and nobody came back since. */
  removed: boolean;
  connection: ShardConnection;
  /** How many pushers wait at this cache until the shard's pusher is gone. */
  standbys: number;
  /** Types that are brought for the shard and that this cache does not know, as `RESOURCE.GROUP`, a declared one with `:IDENTITY`: nothing of them is stored. The first hundred. */
  unknownTypes: readonly string[];
  slices: readonly SliceStatus[];
}>;

/** Whether the pusher of a shard is connected, at this cache or, as far as the link has reported, at one behind it; since when that is known. */
export type ShardConnection =
  /** `peer`: an address, or the name or the id of the cache that the shard is behind. */
  | Readonly<{ kind: 'connected'; forMs: number; peer: string }>
  | Readonly<{ kind: 'away'; forMs: number }>
  /** Written over plain HTTP: there is no connection. */
  | Readonly<{ kind: 'plain' }>;

/** `removes`: so many objects. The removal is made in `releaseInMs` if nobody confirms it before. */
export type HeldStatus = Readonly<{ removes: number; forMs: number; releaseInMs: number }>;

export type SliceStatus = Readonly<{
  group: string;
  resource: string;
  identity: string;
  /** Whether it was ever synced in full. */
  everSynced: boolean;
  /** Whether every object that the shard has of it is here, as of `lagMs` ago: an object that is not here does not exist. */
  whole: boolean;
  /** By the shard's present term, by an earlier one, by none; or assumed, because plain HTTP sends no end. */
  syncedIn: 'this-term' | 'earlier' | 'never' | 'assumed';
  /** Whether changes alone keep it up with the link that it comes over; null when it comes over none. */
  current: boolean | null;
  objects: number;
  /** Of their bodies. */
  bytes: number;
  /** The same wherever the same objects are held; null when nobody reports it. */
  digest: string | null;
  /** Null when it never changed. */
  changedAgoMs: number | null;
  /** How old the oldest change is that the pusher knows and that is not durable where it pushes; null when nobody reports it. */
  lagMs: number | null;
  /** Whether the pusher is connected to its source; null when nobody reports it. */
  sourceConnected: boolean | null;
  /** A removal of much of it that is held; null when none is. */
  held: HeldStatus | null;
}>;
