/** One line on how far the first statement of a shard is, from what can be seen of its sender. */
import type { SenderState } from '../sender/sender-state.js';

export function formatProgress({ slices, refused }: Pick<SenderState, 'slices' | 'refused'>): string {
  const stated = slices.filter(({ phase }) => phase === 'stated').length;
  const objects = slices.reduce((sum, slice) => sum + slice.objects, 0);
  const told = `${stated} of ${slices.length} types stated, ${count(objects)} ${objects === 1 ? 'object' : 'objects'} told`;
  return refused === 0 ? told : `${told}, ${count(refused)} refused`;
}

/** The same in every place: logs are read by others. */
function count(number: number): string {
  return String(number).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
}
