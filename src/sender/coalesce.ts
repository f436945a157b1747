/**
 * What of a batch is worth sending: of several states of one object the newest, as kcp's controller handles the newest that its queue leads to. A
 * deletion before a new object of the same name stays, so that it is seen; so does everything between a begin and its end, in its order.
 */
import { outgoingKey } from './batch.js';
import type { Outgoing } from './source.js';

export function coalesce(batch: readonly Outgoing[]): readonly Outgoing[] {
  if (batch.length < 2) return batch;
  const kept: Outgoing[] = [];
  /** What comes later of each object. */
  const later = new Map<string, Outgoing['kind']>();
  for (const outgoing of batch.toReversed()) {
    const key = outgoingKey(outgoing);
    if (key === undefined) later.clear();
    else {
      const text = [key.cluster, key.namespace, key.name].join('\0');
      const next = later.get(text);
      if (next === 'delete' || (next === 'put' && outgoing.kind === 'put')) continue;
      // Without its body it replaces nothing: it says that the object is as it was.
      if (outgoing.kind === 'delete' || (outgoing.kind === 'put' && outgoing.object.body !== undefined)) later.set(text, outgoing.kind);
    }
    kept.push(outgoing);
  }
  return kept.toReversed();
}
