/**
 * Sends to the other end of a link the keys of objects that this cache removed because that end's
 * syncs did not contain them.
 *
 * The other end may have lost these objects with its disk, and does not know their keys any more.
 * The informers of kcp there keep objects that a relist lacks, so kcp would believe forever that
 * these objects are stored. Given the keys, the other end sends DELETED to its watches, and kcp
 * creates the objects again.
 *
 * Bound: this cache sends no keys while `bufferedMax` bytes wait for the network.
 */
import type { Commit } from '../../domain/change.js';
import type { Key } from '../../domain/key.js';
import type { Subscription } from '../../domain/ports.js';
import type { Store } from '../../domain/store-port.js';
import type { Neighbour } from '../../domain/via.js';
import { formatSlice, type Slice } from '../../domain/slice.js';
import type { FrameOf, PushedKey } from '../../frames/frame.js';
import { admitPossibleKey } from '../../intake/admit/admit-push.js';
import type { PublishedState } from '../../domain/published-state.js';
import type { IntakeRules } from '../../intake/push/receiver-state.js';
import type { LinkSession } from './link-session.js';

const bufferedMax = 512 * 1024;
const keysPerFrame = 256;
/** Keys looked up in one turn of the event loop. */
const keysPerTurn = 64;

export type SweptParts = Readonly<{
  store: Pick<Store, 'commits' | 'state'>;
  /** Undefined while the link is not open. */
  sessionOf: (neighbour: Neighbour) => Pick<LinkSession, 'brings' | 'send' | 'bufferedBytes'> | undefined;
}>;

export function sendSwept({ store, sessionOf }: SweptParts): Subscription {
  return store.commits.subscribe((commit) => {
    for (const { slice, keys } of sweptOf(commit)) {
      const via = store.state.shard(slice.shard)?.via;
      const session = via === undefined || via === 'local' ? undefined : sessionOf(via);
      // If no object of the slice may cross, this cache has removed the objects because of the
      // policies.
      if (session?.brings(slice) !== true) continue;
      for (let at = 0; at < keys.length && session.bufferedBytes < bufferedMax; at += keysPerFrame)
        session.send({ kind: 'swept', slice, keys: keys.slice(at, at + keysPerFrame) });
    }
  });
}

export type ReceiveSweptParts = Readonly<{
  known: Pick<PublishedState, 'shard'>;
  rules: Pick<IntakeRules, 'typeOf' | 'systemClusters'>;
  /** Sends DELETED to the watches of this cache, if no object has the key. */
  reportAbsent: (key: Key) => Promise<void>;
  turn: () => Promise<void>;
}>;

/**
 * Accepts keys only for the shard of a plain writer, which writes only objects that it believes to
 * be absent. A pusher syncs everything again after a loss. A key that no object can have is
 * ignored: an informer joins namespace and name, and might take `team/one` for an object in `team`.
 */
export async function receiveSwept(
  { slice, keys }: FrameOf<'swept'>,
  { known, rules, reportAbsent, turn }: ReceiveSweptParts,
): Promise<void> {
  const { shard, resource } = slice;
  const state = known.shard(shard);
  const type = rules.typeOf(resource, shard);
  if (state?.via !== 'local' || !state.plain || type === undefined) return;
  for (const [at, pushed] of keys.entries()) {
    const key = admitPossibleKey(pushed, { type, resource, shard, systemClusters: rules.systemClusters });
    if (key.kind === 'parsed') await reportAbsent(key.value);
    if (at % keysPerTurn === keysPerTurn - 1) await turn();
  }
}

function sweptOf({ changes, swept }: Commit): Iterable<Readonly<{ slice: Slice; keys: readonly PushedKey[] }>> {
  const found = new Map<string, { slice: Slice; keys: PushedKey[] }>();
  if (swept.size === 0) return [];
  for (const { key, revision } of changes) {
    if (!swept.has(revision)) continue;
    const { shard, resource, cluster, namespace, name } = key;
    const slice = { shard, resource };
    const of = found.get(formatSlice(slice)) ?? { slice, keys: [] };
    found.set(formatSlice(slice), of);
    of.keys.push({ cluster, namespace, name });
  }
  return found.values();
}
