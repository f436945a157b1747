/** One line about the progress of a shard's first sync, from the state of its sender. */
import type { SenderState } from '../sender/sender-state.js';

export function formatProgress({ slices, refused }: Pick<SenderState, 'slices' | 'refused'>): string {
  const synced = slices.filter(({ phase }) => phase === 'synced').length;
  const objects = slices.reduce((sum, slice) => sum + slice.objects, 0);
  const line = `${synced} of ${slices.length} types synced, ${count(objects)} ${objects === 1 ? 'object' : 'objects'} sent`;
  return refused === 0 ? line : `${line}, ${count(refused)} refused`;
}

/** The same in every locale, because other programs read logs. */
function count(number: number): string {
  return number.toLocaleString('en-US');
}
