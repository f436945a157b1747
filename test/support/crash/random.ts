/** Random choices that a seed reproduces (mulberry32). */
export type Random = Readonly<{ below: (bound: number) => number; chance: (share: number) => boolean }>;

export function seeded(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return { below: (bound) => Math.floor(next() * bound), chance: (share) => next() < share };
}
