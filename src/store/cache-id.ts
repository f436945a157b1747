const digits = 16;

/** The id that a store gets at its birth: hexadecimal digits. `random` gives [0, 1). */
export function newCacheId(random: () => number): string {
  return Array.from({ length: digits }, () => Math.floor(random() * 16).toString(16)).join('');
}
