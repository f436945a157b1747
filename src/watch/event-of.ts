/**
 * What one change means to a watch with a selector: a view of the full stream, flips included.
 *
 *   before → after     in → in MODIFIED   out → in ADDED   in → out DELETED, with the old content   out → out nothing
 */
import type { Change } from '../domain/change.js';
import { expired, Refused } from '../domain/errors.js';
import { isSelected } from '../domain/object-metadata.js';
import type { StoredObject } from '../domain/object.js';
import type { EventItem } from '../domain/ports.js';
import { isEverything, type Selector } from '../domain/selector.js';

export function eventOf(change: Change, selector: Selector): EventItem | undefined {
  if (change.kind === 'put') return isEverything(selector) ? putEvent(change) : selectedPutEvent(change, selector);
  const object = replaced(change);
  return isSelected(object, selector) ? { type: 'DELETED', object, resourceVersion: change.resourceVersion } : undefined;
}

function putEvent({ object, created }: Change & { kind: 'put' }): EventItem {
  return { type: created ? 'ADDED' : 'MODIFIED', object, resourceVersion: object.resourceVersion };
}

function selectedPutEvent(change: Change & { kind: 'put' }, selector: Selector): EventItem | undefined {
  const { object, created } = change;
  const { resourceVersion } = object;
  const before = created ? undefined : replaced(change);
  const wasIn = before !== undefined && isSelected(before, selector);
  if (isSelected(object, selector)) return { type: wasIn ? 'MODIFIED' : 'ADDED', object, resourceVersion };
  return wasIn ? { type: 'DELETED', object: before, resourceVersion } : undefined;
}

/** Rows above the compacted revision have what they replaced; if that is gone, so is the history that was asked for. */
function replaced(change: Change): StoredObject {
  const object = change.previous();
  if (object === undefined) throw new Refused(expired('the replaced content has been compacted, please start over'));
  return object;
}
