/**
 * Turns one change into the event that a watch with a selector sees. An object that enters or
 * leaves the selection is ADDED or DELETED.
 *
 *   before → after     in → in MODIFIED              out → in  ADDED
 *                      in → out DELETED, old content out → out no event
 */
import type { Change } from '../domain/change.js';
import { expired, Refused } from '../domain/errors.js';
import { isSelected } from '../domain/object-metadata.js';
import type { StoredObject } from '../domain/object.js';
import type { EventItem } from '../domain/ports.js';
import { isEverything, type Selector } from '../domain/syntax/selector.js';

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

/**
 * Only a compacted change lacks the content that it replaced. The requested history is then
 * compacted too.
 */
function replaced(change: Change): StoredObject {
  const object = change.previous();
  if (object === undefined) throw new Refused(expired('the replaced content has been compacted, please start over'));
  return object;
}
