import { entryOf } from './base/entry-of.js';
import type { Body, StoredObject } from './object.js';
import { isEverything, meetsSelector, type Selector } from './syntax/selector.js';

const decoder = new TextDecoder();
const labels = new WeakMap<Body, ReadonlyMap<string, string>>();
const annotations = new WeakMap<Body, ReadonlyMap<string, string>>();

/** Cached, because several selectors may need the labels in one tick. */
export function labelsOf(body: Body): ReadonlyMap<string, string> {
  return remembered(labels, body, (metadata) => metadata.labels);
}

/** Cached apart from labels, because annotations are longer and seldom needed. */
export function annotationsOf(body: Body): ReadonlyMap<string, string> {
  return remembered(annotations, body, (metadata) => metadata.annotations);
}

/** Every admitted body has a uid. */
export function uidOf(body: Body): string {
  return metadataOf(body).uid ?? '';
}

/** Parses labels only if the selector has terms. */
export function isSelected({ key, body }: StoredObject, selector: Selector): boolean {
  return isEverything(selector) || meetsSelector(selector, { namespace: key.namespace, name: key.name, labels: labelsOf(body) });
}

type Texts = Record<string, string> | null | undefined;
type Metadata = Readonly<{ uid?: string; labels?: Texts; annotations?: Texts }>;

function remembered(
  known: WeakMap<Body, ReadonlyMap<string, string>>,
  body: Body,
  choose: (metadata: Metadata) => Texts,
): ReadonlyMap<string, string> {
  return entryOf(known, body, () => new Map(Object.entries(choose(metadataOf(body)) ?? {})));
}

/** The cast is safe because the metadata was validated when the body arrived. */
function metadataOf({ bytes, marks: { metadataStart, metadataEnd } }: Body): Metadata {
  return JSON.parse(decoder.decode(bytes.subarray(metadataStart, metadataEnd))) as Metadata;
}
