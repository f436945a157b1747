/**
 * Names to the other end of a link what its statements did not name, and what was let go of here for that.
 *
 * The other end may have lost these objects with its disk. It does not know their names any more, and the informers of kcp at it keep what a relist lacks
 * (R24): kcp would take them for written, for ever. Told their names, it tells its watches that they are gone, and kcp creates them again.
 * Bound: nothing is named while `bufferedMax` bytes wait for the network.
 */
import type { Commit } from '../domain/change.js';
import { parseClusterName } from '../domain/cluster.js';
import type { Key } from '../domain/key.js';
import type { Commits, Subscription } from '../domain/ports.js';
import type { LinkSide } from '../domain/side.js';
import { formatSlice, type Slice } from '../domain/slice.js';
import type { FrameOf, PushedKey } from '../frames/frame.js';
import type { KnownShards } from '../intake/known-shards.js';
import type { LinkSession } from './link-session.js';

const bufferedMax = 512 * 1024;
const keysPerFrame = 256;
/** Looked up in one turn of the event loop. */
const keysPerTurn = 64;

export type UnstatedParts = Readonly<{
  store: Commits;
  known: Pick<KnownShards, 'shard'>;
  /** Undefined while the link is not open. */
  sessionOf: (side: LinkSide) => Pick<LinkSession, 'brings' | 'send' | 'bufferedBytes'> | undefined;
}>;

export function nameUnstated({ store, known, sessionOf }: UnstatedParts): Subscription {
  return store.subscribe((commit) => {
    for (const { slice, keys } of unstatedOf(commit)) {
      const side = known.shard(slice.shard)?.side;
      const session = side === undefined || side === 'local' ? undefined : sessionOf(side);
      // What this end's own policy lets nothing of in it has let go of by itself.
      if (session?.brings(slice) !== true) continue;
      for (let at = 0; at < keys.length && session.bufferedBytes < bufferedMax; at += keysPerFrame)
        session.send({ kind: 'unstated', slice, keys: keys.slice(at, at + keysPerFrame) });
    }
  });
}

export type HearingParts = Readonly<{
  known: Pick<KnownShards, 'shard'>;
  /** Tells those who watch this cache that a key holds nothing, if that is so. */
  tellAbsent: (key: Key) => Promise<void>;
  turn: () => Promise<void>;
}>;

/** A pusher states everything again where something was lost; a plain writer writes only what it takes for absent. */
export async function hearUnstated({ slice, keys }: FrameOf<'unstated'>, { known, tellAbsent, turn }: HearingParts): Promise<void> {
  const shard = known.shard(slice.shard);
  if (shard?.side !== 'local' || !shard.plain) return;
  for (const [at, { cluster: text, namespace, name }] of keys.entries()) {
    const cluster = parseClusterName(text);
    if (cluster !== undefined) await tellAbsent({ ...slice, cluster, namespace, name });
    if (at % keysPerTurn === keysPerTurn - 1) await turn();
  }
}

function unstatedOf({ changes, unstated }: Commit): Iterable<Readonly<{ slice: Slice; keys: readonly PushedKey[] }>> {
  const found = new Map<string, { slice: Slice; keys: PushedKey[] }>();
  if (unstated.size === 0) return [];
  for (const { key, revision } of changes) {
    if (!unstated.has(revision)) continue;
    const { shard, resource, cluster, namespace, name } = key;
    const slice = { shard, resource };
    const of = found.get(formatSlice(slice)) ?? { slice, keys: [] };
    found.set(formatSlice(slice), of);
    of.keys.push({ cluster, namespace, name });
  }
  return found.values();
}
