import type { Body, StoredObject } from './object.js';
import { isEverything, meetsSelector, type Selector } from './selector.js';

const decoder = new TextDecoder();
const read = new WeakMap<Body, ReadonlyMap<string, string>>();

/** The labels of a stored body; remembered, because several selectors may ask in one tick. */
export function labelsOf(body: Body): ReadonlyMap<string, string> {
  const known = read.get(body);
  if (known !== undefined) return known;
  const labels = new Map(Object.entries(metadataOf(body).labels ?? {}));
  read.set(body, labels);
  return labels;
}

/** The uid of a stored body; every one has one (W4). */
export function uidOf(body: Body): string {
  return metadataOf(body).uid ?? '';
}

/** Whether a stored object meets a selector. Labels are read only when the selector asks for something. */
export function isSelected({ key, body }: StoredObject, selector: Selector): boolean {
  return isEverything(selector) || meetsSelector(selector, { namespace: key.namespace, name: key.name, labels: labelsOf(body) });
}

/** What was checked when the body came in, so that its types may be relied on. */
function metadataOf({ bytes, marks: { metadataStart, metadataEnd } }: Body): { uid?: string; labels?: Record<string, string> | null } {
  return JSON.parse(decoder.decode(bytes.subarray(metadataStart, metadataEnd))) as { uid?: string; labels?: Record<string, string> | null };
}
