import type { Body, StoredObject } from './object.js';
import { isEverything, meetsSelector, type Selector } from './selector.js';

const decoder = new TextDecoder();
const read = new WeakMap<Body, ReadonlyMap<string, string>>();

/** The labels of a stored body; remembered, because several selectors may ask in one tick. */
export function labelsOf(body: Body): ReadonlyMap<string, string> {
  const known = read.get(body);
  if (known !== undefined) return known;
  const { metadataStart, metadataEnd } = body.marks;
  const metadata = JSON.parse(decoder.decode(body.bytes.subarray(metadataStart, metadataEnd))) as { labels?: Record<string, string> | null };
  const labels = new Map(Object.entries(metadata.labels ?? {}));
  read.set(body, labels);
  return labels;
}

/** Whether a stored object meets a selector. Labels are read only when the selector asks for something. */
export function isSelected({ key, body }: StoredObject, selector: Selector): boolean {
  return isEverything(selector) || meetsSelector(selector, { namespace: key.namespace, name: key.name, labels: labelsOf(body) });
}
