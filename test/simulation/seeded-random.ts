/**
 * Random choices of many parties from one seed. Each party has a stream of its own, by name, so
 * more draws of one party, or a new party, change nothing for the others. So a failing run stays
 * the same while fast-check shrinks it.
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
