/**
 * What crosses a websocket: frames, each one msgpack array, one per websocket message. A closed union with one reader
 * (read-frame.ts) and one writer (write-frame.ts).
 *
 *   frame    = [1,  protocol, role, name, incarnation, route, slices, positions, agent]            hello
 *            | [2,  protocol, cacheId, epoch, stated, credit, limits]                              welcome
 *            | [3,  sequence, slice, version, objects]                                             put
 *            | [4,  sequence, slice, keys]                                                         delete
 *            | [5,  sequence, slice, revision]                                                     begin
 *            | [6,  sequence, slice, revision, count, digest]                                      end
 *            | [7,  slice, reason]                                                                 restate
 *            | [8,  positions]                                                                     progress
 *            | [9,  shard, incarnation, removed]                                                   claim
 *            | [10, route]                                                                         route
 *            | [11, rules, hash]                                                                   policy
 *            | [12, slice, epoch, revision, value]                                                 digest
 *            | [13, sequence, credit]                                                              ack
 *            | [14, sequence, reason, message]                                                     refuse
 *            | [15, freshness]                                                                     status
 *            | [16, reason, message, retryAfterMs | nil]                                           bye
 *   slice    = [shard, group, resource, identity]
 *   objects  = [cluster, namespace, name, sourceVersion, body | nil, …]     five elements each     body: JSON text as bin; nil: keep
 *   keys     = [cluster, namespace, name, …]                                three elements each
 *   stated   = [slice, …]         positions = [[slice, epoch, revision, policyHash], …]
 *   credit   = [mutations, bytes] limits = [frameBytes, frameMutations, bodyBytes]
 *   freshness = [[slice, connected, synced, lagMs], …]
 *
 * Sequence: mutations are numbered from 1 in each connection. A put or delete frame carries the number of its first one, and
 * they count on from there; begin and end are one each. An ack or refuse names one of these numbers.
 *
 * Liveness is the websocket's own ping and pong; there are no frames for it.
 *
 * Ladder. Frames are additive: a new member goes to the end, an older reader ignores it. What an older reader would
 * misread is a new version, negotiated in hello, with golden bytes kept for the old one.
 *   v1: all of the above.
 */
import type { Incarnation } from '../domain/push.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import type { ByeReason } from './bye.js';

export const protocolVersion = 1;

export type FrameOf<Kind extends Frame['kind']> = Extract<Frame, { kind: Kind }>;

/** How much may be sent and not yet acknowledged. */
export type Credit = Readonly<{ mutations: number; bytes: number }>;

/** What the receiving side takes at most. */
export type FrameLimits = Readonly<{ frameBytesMax: number; frameMutationsMax: number; bodyBytesMax: number }>;

export type Position = Readonly<{ slice: Slice; epoch: number; revision: number; policyHash: string }>;

/** An object as it is pushed. Its key's texts are as they came; whoever admits it parses them. */
export type PushedObject = Readonly<{
  cluster: string;
  namespace: string;
  name: string;
  /** The source's own version of it: told, never compared. */
  sourceVersion: string;
  /** JSON text. Undefined: whatever the receiver holds under this key is kept. */
  body: Uint8Array | undefined;
}>;

export type PushedKey = Readonly<{ cluster: string; namespace: string; name: string }>;

/** What a sender knows of the freshness of a slice: whether its source is connected, and how old the oldest change is that is not acknowledged. */
export type SliceFreshness = Readonly<{ slice: Slice; connected: boolean; synced: boolean; lagMs: number }>;

export type Frame =
  | Readonly<{
      kind: 'hello';
      protocol: number;
      role: 'shard' | 'cache';
      /** Of the shard, or the id of the cache. */
      name: string;
      incarnation: Incarnation;
      /** Ids of caches from this one to the root; empty for a shard. */
      route: readonly string[];
      /** What it will state, as far as it knows now. */
      slices: readonly Slice[];
      positions: readonly Position[];
      /** The sender's program and version, for the log. */
      agent: string;
    }>
  | Readonly<{
      kind: 'welcome';
      protocol: number;
      cacheId: string;
      epoch: number;
      /** Slices that this incarnation has stated here: it may go on with changes. All others are to be stated. */
      stated: readonly Slice[];
      credit: Credit;
      limits: FrameLimits;
    }>
  | Readonly<{ kind: 'put'; sequence: number; slice: Slice; version: string; objects: readonly PushedObject[] }>
  | Readonly<{ kind: 'delete'; sequence: number; slice: Slice; keys: readonly PushedKey[] }>
  | Readonly<{ kind: 'begin'; sequence: number; slice: Slice; revision: string }>
  /** `count`: objects put since begin. `digest`: '' when the sender has none. */
  | Readonly<{ kind: 'end'; sequence: number; slice: Slice; revision: string; count: number; digest: string }>
  | Readonly<{ kind: 'restate'; slice: Slice; reason: string }>
  | Readonly<{ kind: 'progress'; positions: readonly Position[] }>
  | Readonly<{ kind: 'claim'; shard: ShardName; incarnation: Incarnation; removed: boolean }>
  | Readonly<{ kind: 'route'; route: readonly string[] }>
  /** `rules`: JSON text. */
  | Readonly<{ kind: 'policy'; rules: string; hash: string }>
  | Readonly<{ kind: 'digest'; slice: Slice; epoch: number; revision: number; value: string }>
  | Readonly<{ kind: 'ack'; sequence: number; credit: Credit }>
  /** That mutation only. `reason` is one of domain/errors.ts. */
  | Readonly<{ kind: 'refuse'; sequence: number; reason: string; message: string }>
  | Readonly<{ kind: 'status'; freshness: readonly SliceFreshness[] }>
  /** The last frame. `retryAfterMs` undefined: do not come back. */
  | Readonly<{ kind: 'bye'; reason: ByeReason; message: string; retryAfterMs: number | undefined }>;
