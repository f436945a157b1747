/** How long the parts of a frame may be. A key's texts have no bound of their own: a bad key is refused alone, and its frame is accepted. */
export const frameBounds = Object.freeze({
  /** Of names, ids, versions, hashes. */
  nameCharactersMax: 1024,
  /** Of messages for people; the writer cuts longer ones. */
  messageCharactersMax: 4096,
  policyCharactersMax: 64 * 1024,
  /** Of a cache's id where claims name it. */
  idCharactersMax: 64,
  /** Of the text that stands for a filter. */
  hashCharactersMax: 64,
  /** Caches that a claim has come by, or that are above another. */
  pathMax: 64,
  /** Members of a list, and mutations in a frame. */
  listMax: 10_000,
  /** Slices that a writer names, or reports on, in one frame: more would keep either end for milliseconds. */
  namesPerFrame: 1_000,
});
