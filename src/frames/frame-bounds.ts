/**
 * Maximum lengths of the parts of a frame. The texts of a key are not bounded here: the receiver
 * refuses one bad key alone and accepts the rest of its frame.
 */
export const frameBounds = Object.freeze({
  /** For names, ids, versions and hashes. */
  nameCharactersMax: 1024,
  /** For messages to people; the writer truncates longer ones. */
  messageCharactersMax: 4096,
  policyCharactersMax: 64 * 1024,
  /** For the id of a cache in claims. */
  idCharactersMax: 64,
  /** For the hash of a filter. */
  hashCharactersMax: 64,
  /** Number of caches in the path of a claim, or in a route. */
  pathMax: 64,
  /** Maximum members of a list, and mutations in a frame. */
  listMax: 10_000,
  /**
   * Slices that a writer names or reports on in one frame. More would block either end for
   * milliseconds.
   */
  namesPerFrame: 1_000,
});
