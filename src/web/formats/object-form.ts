/**
 * The forms of an object in an answer: whole, metadata only, or a table row. The first two are
 * stored bytes with a few texts spliced in. Only a table parses the object.
 */
import type { ServedType } from '../../domain/catalogue/catalogue.js';
import { formatApiVersion } from '../../domain/resource.js';
import type { StoredObject } from '../../domain/object.js';
import { inVersion, revisionText } from '../../json/splice.js';
import { encode, join, type Part } from './parts.js';
import { cells, columnDefinitions, columnsOf, type IncludeObject, type Wildcards } from './table.js';

/** One way to write objects of a type. Forms with the same `id` write the same bytes. */
export interface ObjectForm {
  readonly id: string;
  /** No other form has the same id. */
  readonly isOwn?: true;
  /** apiVersion and kind of one object in this form; `listKind`: the kind of a list of them. */
  readonly typeMeta: Readonly<{ apiVersion: string; kind: string; listKind: string }>;
  /** The start of a list, up to the bracket before its first object. */
  readonly listOpening: Uint8Array;
  element(object: StoredObject, resourceVersion: string): readonly Part[];
  single(object: StoredObject, resourceVersion: string): readonly Part[];
  /** An object with only the given metadata, which is JSON text. */
  bare(metadata: string): readonly Part[];
}

export function fullForm(type: ServedType, version: string): ObjectForm {
  const apiVersion = formatApiVersion(type.group, version);
  const single = (object: StoredObject, resourceVersion: string): readonly Part[] => {
    const body = inVersion(object.body, apiVersion, version);
    const { revisionAt } = body.marks;
    return [body.bytes.subarray(0, revisionAt), revisionText(body, resourceVersion), body.bytes.subarray(revisionAt)];
  };
  return {
    id: `whole ${apiVersion}`,
    typeMeta: { apiVersion, kind: type.kind, listKind: type.listKind },
    listOpening: encode(`{"apiVersion":"${apiVersion}","kind":"${type.listKind}","items":[`),
    element: single,
    single,
    bare: (metadata) => [`{"kind":"${type.kind}","apiVersion":"${apiVersion}","metadata":`, encode(metadata), '}'],
  };
}

const partialApiVersion = 'meta.k8s.io/v1';
const partialOpening = `{"kind":"PartialObjectMetadata","apiVersion":"${partialApiVersion}","metadata":`;

/**
 * Metadata only. `showsVersion`: an annotation has the object's own API version, because a request
 * for all clusters may find types of different versions.
 */
export function partialForm(type: ServedType, version: string, showsVersion: boolean): ObjectForm {
  const own = type.versions.some(({ name }) => name === version) ? version : undefined;
  const metadata = ({ body }: StoredObject, resourceVersion: string): readonly Part[] => {
    const { metadataStart, metadataEnd, annotationsAt, revisionAt } = body.marks;
    const revision = { at: revisionAt, text: revisionText(body, resourceVersion) };
    const annotation = { at: annotationsAt, text: `"kcp.io/original-api-version":"${formatApiVersion(type.group, own ?? body.version)}",` };
    const insertions = (showsVersion ? [revision, annotation] : [revision]).toSorted((a, b) => a.at - b.at);
    const parts: Part[] = [];
    let from = metadataStart;
    for (const { at, text } of insertions) {
      parts.push(body.bytes.subarray(from, at), text);
      from = at;
    }
    parts.push(body.bytes.subarray(from, metadataEnd));
    return parts;
  };
  const single = (object: StoredObject, resourceVersion: string): readonly Part[] => [
    partialOpening,
    ...metadata(object, resourceVersion),
    '}',
  ];
  return {
    id: `partial ${type.group} ${own ?? '*'} ${showsVersion}`,
    typeMeta: { apiVersion: partialApiVersion, kind: 'PartialObjectMetadata', listKind: 'PartialObjectMetadataList' },
    listOpening: encode(`{"kind":"PartialObjectMetadataList","apiVersion":"${partialApiVersion}","items":[`),
    element: single,
    single,
    bare: (text) => [partialOpening, encode(text), '}'],
  };
}

/**
 * If an object is longer, its table row shows only cells from the metadata. Parsing the object for
 * a few more cells would delay other requests.
 */
const cellsBytesMax = 64 * 1024;

function textForCells({ body }: StoredObject, whole: readonly Part[]): string {
  const { bytes, marks } = body;
  if (bytes.length <= cellsBytesMax) return Buffer.from(join(whole)).toString();
  return `{"metadata":${Buffer.from(bytes.subarray(marks.metadataStart, marks.metadataEnd)).toString()}}`;
}

/** `id` distinguishes table forms. */
export type TableOptions = Readonly<{
  id: string;
  tableVersion: 'v1' | 'v1beta1';
  includeObject: IncludeObject;
  open: Wildcards;
  now: () => number;
}>;

/**
 * No two tables share a form, because the first table of a watch has the columns, and later ones
 * have none.
 */
export function tableForm(type: ServedType, version: string, options: TableOptions): ObjectForm {
  const { id, tableVersion, includeObject, open, now } = options;
  const whole = fullForm(type, version);
  const partial = partialForm(type, version, open.cluster);
  const apiVersion = `meta.k8s.io/${tableVersion}`;
  const columns = columnsOf(type, version, open);
  const definitions = encode(JSON.stringify(columnDefinitions(columns)));
  let columnsSent = false;

  const row = (object: StoredObject, resourceVersion: string): readonly Part[] => {
    const parsed: unknown = JSON.parse(textForCells(object, whole.single(object, resourceVersion)));
    const shown = { Metadata: partial, Object: whole, None: undefined }[includeObject];
    const beside = shown === undefined ? [] : [',"object":', ...shown.single(object, resourceVersion)];
    return [encode(`{"cells":${JSON.stringify(cells(columns, parsed, now()))}`), ...beside, '}'];
  };
  const table = (resourceVersion: string, rows: readonly Part[]): readonly Part[] => {
    const received = columnsSent ? '[]' : definitions;
    columnsSent = true;
    const opening = `{"kind":"Table","apiVersion":"${apiVersion}","metadata":{"resourceVersion":"${resourceVersion}"},"columnDefinitions":`;
    return [opening, received, ',"rows":[', ...rows, ']}'];
  };
  return {
    id: `table ${id}`,
    isOwn: true,
    typeMeta: { apiVersion, kind: 'Table', listKind: 'Table' },
    listOpening: join([`{"kind":"Table","apiVersion":"${apiVersion}","columnDefinitions":`, definitions, ',"rows":[']),
    element: row,
    single: (object, resourceVersion) => table(resourceVersion, row(object, resourceVersion)),
    bare: (metadata) => {
      const { resourceVersion } = JSON.parse(metadata) as { resourceVersion?: string };
      return table(resourceVersion ?? '', ['{"cells":[],"object":', ...partial.bare(metadata), '}']);
    },
  };
}
