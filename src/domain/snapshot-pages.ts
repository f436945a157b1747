import type { Key } from './key.js';
import type { StoredObject } from './object.js';
import type { Snapshot } from './store-port.js';

/** Closes the snapshot after its last page, or when the reader stops. */
export async function* snapshotPages(snapshot: Snapshot): AsyncGenerator<readonly StoredObject[]> {
  try {
    let after: Key | undefined;
    do {
      const { objects, next } = await snapshot.page(after);
      yield objects;
      after = next;
    } while (after !== undefined);
  } finally {
    snapshot.close();
  }
}
