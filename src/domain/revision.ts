/**
 * One integer for each change, store-wide and rising, assigned in the commit. Its text, the
 * `resourceVersion`, is defined by the engine. 0 means "before the first change".
 */
export type Revision = number;

const resourceVersionPattern = /^[1-9][0-9]{0,19}$/;

/**
 * Whether a peer's text has the form of a resourceVersion, without which a store cannot locate it.
 */
export function isResourceVersion(text: string): boolean {
  return resourceVersionPattern.test(text);
}

/**
 * The position of a client's resourceVersion. `ours`: in this store's recorded history. `above`:
 * above the published revision: a future one, or one of another store. `below`: a smaller one of
 * another store.
 */
export type Located = Readonly<{ kind: 'ours'; revision: Revision }> | Readonly<{ kind: 'above' }> | Readonly<{ kind: 'below' }>;
