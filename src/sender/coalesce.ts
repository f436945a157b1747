/**
 * Drops superseded mutations from a batch: of several states of one object it keeps the newest, as
 * a work queue in kcp's controller does. It keeps a deletion before a new object of the same name,
 * so that watchers see it. Nothing is dropped across a begin or an end, and their order stays.
 */
import { outgoingKey } from './batch.js';
import type { Outgoing } from './source.js';

export function coalesce(batch: readonly Outgoing[]): readonly Outgoing[] {
  if (batch.length < 2) return batch;
  const kept: Outgoing[] = [];
  /** By object: the kind of its later mutation in the batch. */
  const later = new Map<string, Outgoing['kind']>();
  for (const outgoing of batch.toReversed()) {
    const key = outgoingKey(outgoing);
    if (key === undefined) later.clear();
    else {
      const text = [key.cluster, key.namespace, key.name].join('\0');
      const next = later.get(text);
      if (next === 'delete' || (next === 'put' && outgoing.kind === 'put')) continue;
      // A put without a body supersedes nothing: it only says that the object exists unchanged.
      if (outgoing.kind === 'delete' || (outgoing.kind === 'put' && outgoing.object.body !== undefined)) later.set(text, outgoing.kind);
    }
    kept.push(outgoing);
  }
  return kept.toReversed();
}
