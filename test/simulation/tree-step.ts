/**
 * What may happen to a tree, one step of a script (tree-script.ts). Numbers name caches, shards,
 * objects and policies by place in a list. Higher numbers start over at the beginning of the list,
 * so that every part of a script is a script.
 */
export type CacheStepKind =
  /**
   * On the link to its parent. deaf: nothing arrives from the parent; mute: nothing arrives at the
   * parent.
   */
  | 'partition'
  | 'heal'
  | 'cut'
  | 'deaf'
  | 'mute'
  | 'stop'
  | 'wipe'
  | 'backup'
  | 'restore'
  /** Its process is paused, with its sockets open, until it thaws; its peers wait 20 s. */
  | 'freeze'
  | 'thaw'
  | 'compact'
  /** The plain writer of the shard writes at that cache from now on. */
  | 'rewrite';

export type TreeStep =
  | Readonly<{ kind: 'pass'; ms: number }>
  /** Changes of the shard that go on while the next steps run. */
  | Readonly<{ kind: 'flow'; shard: number; changes: number; everyMs: number }>
  /**
   * The shard's pusher disconnects, or connects to the same cache again; the shard itself goes on.
   */
  | Readonly<{ kind: 'quit' | 'join'; shard: number }>
  /**
   * Another process of the shard's pusher, which reads the same shard, waits at a cache until it
   * may have the shard.
   */
  | Readonly<{ kind: 'spare'; shard: number; cache: number }>
  /** A load balancer alternates between the pusher's cache and this one for each connection. */
  | Readonly<{ kind: 'balance'; shard: number; cache: number }>
  /**
   * For so long, the connection of the shard's pusher is cut (`cut`), nothing arrives from its
   * cache (`deaf`), or nothing arrives at it (`mute`).
   */
  | Readonly<{ kind: 'sever'; shard: number; how: 'cut' | 'deaf' | 'mute'; ms: number }>
  /**
   * For so long, nothing arrives from the parent, or nothing arrives at it. The connection stays
   * unless an end gives up.
   */
  | Readonly<{ kind: 'stall'; cache: number; isUp: boolean; ms: number }>
  /** The wall clock of the cache's machine is set while the cache runs. */
  | Readonly<{ kind: 'clock'; cache: number; byMs: number }>
  | Readonly<{ kind: 'put'; shard: number; object: number; isPublic: boolean; content: number }>
  | Readonly<{ kind: 'remove'; shard: number; object: number }>
  | Readonly<{ kind: 'write'; object: number; isPublic: boolean; content: number }>
  | Readonly<{ kind: 'unwrite'; object: number }>
  | Readonly<{ kind: 'path'; shard: number; cluster: number; path: number }>
  /** Whether the shard declares the type of its instances. */
  | Readonly<{ kind: 'declare'; shard: number; isDeclared: boolean }>
  | Readonly<{ kind: CacheStepKind; cache: number }>
  | Readonly<{ kind: 'crash'; cache: number; isKept: boolean; isNoticed: boolean }>
  | Readonly<{ kind: 'start'; cache: number; skew: number }>
  | Readonly<{ kind: 'tamper'; cache: number; isUp: boolean; how: TamperKind }>
  | Readonly<{ kind: 'policy'; cache: number; forward: number; follow: number; accept: number; offer: number }>
  | Readonly<{ kind: 'moveOrigin'; shard: number; cache: number; objects: number }>
  /** An operator removes the shard at a cache. */
  | Readonly<{ kind: 'clear'; shard: number; cache: number }>
  | Readonly<{ kind: 'reparent'; cache: number; parent: number }>
  /** The cache gets a wrong parent, possibly below itself; `heal` corrects it. */
  | Readonly<{ kind: 'misparent'; cache: number; parent: number }>;

export type TamperKind = 'dropped' | 'doubled' | 'swapped';
