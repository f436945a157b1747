/**
 * One integer per change, store-wide, rising, given in the commit. Its text, `resourceVersion`, belongs to the engine.
 * 0 stands for "before the first change".
 */
export type Revision = number;

const resourceVersionPattern = /^[1-9][0-9]{0,19}$/;

/** Whether a text from a peer has the form of a resourceVersion, so that a store can locate it. */
export function isResourceVersion(text: string): boolean {
  return resourceVersionPattern.test(text);
}

/**
 * Where a resourceVersion that a client sent stands: in this store's recorded history, above what is
 * published (the future, or a foreign text that is numerically larger), or below (foreign and smaller).
 */
export type Located = Readonly<{ kind: 'ours'; revision: Revision }> | Readonly<{ kind: 'above' }> | Readonly<{ kind: 'below' }>;
