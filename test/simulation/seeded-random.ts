/**
 * Random choices of many parties from one seed. Each party has a stream of its own, by name. If a
 * party draws more often, or a party is added, the others stay the same, so a failing run does not
 * change while fast-check shrinks it.
 */
import { seeded, type Random } from '../support/crash/random.js';

const words = 2 ** 32;

export function streamOf(seed: number, name: string): Random {
  let hash = (seed ^ 0x811c9dc5) >>> 0;
  for (let at = 0; at < name.length; at += 1) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193) >>> 0;
  return seeded(hash);
}

/** A replacement for Math.random. */
export function fractions(random: Random): () => number {
  return () => random.below(words) / words;
}
