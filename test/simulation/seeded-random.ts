/**
 * Random choices of many parties from one seed. Each party has a stream of its own, by name. A party that draws more often, or is
 * added, changes nothing for the others, so a failing run stays the same while it is made smaller.
 */
import { seeded, type Random } from '../support/crash/random.js';

const words = 2 ** 32;

export function streamOf(seed: number, name: string): Random {
  let hash = (seed ^ 0x811c9dc5) >>> 0;
  for (let at = 0; at < name.length; at += 1) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193) >>> 0;
  return seeded(hash);
}

/** What Math.random is elsewhere. */
export function fractions(random: Random): () => number {
  return () => random.below(words) / words;
}
