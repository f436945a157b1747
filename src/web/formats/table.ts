/**
 * The Table form of objects, which kubectl shows. Pure.
 *
 * The columns are the name and the type's printer columns, or the age if it has none. A cell whose
 * path finds nothing is null. Values are for people: the last digits of an int64 may be wrong.
 *
 * If a request covers all shards or all logical clusters, many objects may have the same name, so
 * each object's shard or cluster follows its name. kubectl puts NAMESPACE before the name and keeps
 * the order of the other columns.
 * https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables
 */
import { entryOf } from '../../domain/base/entry-of.js';
import type { Column, ServedType } from '../../domain/catalogue/catalogue.js';
import { find, nowhere, parseJsonPath, type JsonPath } from '../../json/json-path.js';

export type Cell = string | number | boolean | null;

export type ColumnDefinition = Readonly<{ name: string; type: string; format: string; description: string; priority: number }>;

export type IncludeObject = 'Metadata' | 'Object' | 'None';

/** Kubernetes' own texts, which kubectl and consoles show. */
const nameDescription =
  'Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names';
const ageDescription =
  'CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata';

const nameColumn: Column = { name: 'Name', type: 'string', format: 'name', description: nameDescription, jsonPath: '.metadata.name' };
const shardColumn: Column = placeColumn('Shard', 'kcp.io/shard', 'The shard that the object belongs to.');
const clusterColumn: Column = placeColumn('Cluster', 'kcp.io/cluster', 'The logical cluster that the object is in.');
const ageColumn: Column = { name: 'Age', type: 'date', description: ageDescription, jsonPath: '.metadata.creationTimestamp' };

/** Whether the request covers all shards or all clusters, so that its table needs their columns. */
export type Wildcards = Readonly<{ shard: boolean; cluster: boolean }>;

/** The `includeObject` parameter; undefined if it is none of Kubernetes' three values (400). */
export function parseIncludeObject(text: string | undefined): IncludeObject | undefined {
  if (text === undefined || text === '') return 'Metadata';
  return text === 'Metadata' || text === 'Object' || text === 'None' ? text : undefined;
}

export function columnsOf(type: ServedType, version: string, open: Wildcards): readonly Column[] {
  const own = type.versions.find(({ name }) => name === version)?.columns ?? [];
  const place = [...(open.shard ? [shardColumn] : []), ...(open.cluster ? [clusterColumn] : [])];
  return [nameColumn, ...place, ...(own.length > 0 ? own : [ageColumn])];
}

export function columnDefinitions(columns: readonly Column[]): readonly ColumnDefinition[] {
  return columns.map((column) => ({
    name: column.name,
    type: column.type,
    format: column.format ?? '',
    description: column.description ?? `Custom resource definition column (in JSONPath format): ${column.jsonPath}`,
    priority: column.priority ?? 0,
  }));
}

export function cells(columns: readonly Column[], object: unknown, nowMs: number): readonly Cell[] {
  return columns.map((column) => {
    const path = entryOf(paths, column, () => parseJsonPath(column.jsonPath) ?? nowhere);
    const [value] = find(path, object);
    return cellOf(column.type, value, nowMs);
  });
}

/**
 * Formats a duration in two or three significant figures: `45s`, `5m12s`, `3h`, `2d4h`, `6y324d`.
 * Less than two seconds below zero count as 0, because clocks differ.
 */
export function formatAge(durationMs: number): string {
  const seconds = Math.trunc(durationMs / 1000);
  const minutes = Math.trunc(seconds / 60);
  const hours = Math.trunc(minutes / 60);
  const days = Math.trunc(hours / 24);
  const years = Math.trunc(days / 365);

  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 120) return `${seconds}s`;
  if (minutes < 10) return pair(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return `${minutes}m`;
  if (hours < 8) return pair(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  if (days < 8) return pair(days, 'd', hours % 24, 'h');
  if (years < 2) return `${days}d`;
  if (years < 8) return pair(years, 'y', days % 365, 'd');
  return `${years}y`;
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}

/** Every object that the server sends has its shard and its cluster in these annotations. */
function placeColumn(name: string, annotation: string, description: string): Column {
  return { name, type: 'string', description, jsonPath: `.metadata.annotations.${annotation.replaceAll('.', '\\.')}` };
}

/** Caches the parsed path of each column: a list has thousands of rows, but only a few columns. */
const paths = new WeakMap<Column, JsonPath>();

/**
 * A value of another type than its column's gives an empty cell. A string column formats any value.
 */
function cellOf(type: string, value: unknown, nowMs: number): Cell {
  if (value === undefined || value === null) return null;
  switch (type) {
    case 'string':
      return typeof value === 'object' ? textOf(value) : String(value);
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      return typeof value === 'string' ? ageCell(value, nowMs) : null;
    default:
      return null;
  }
}

/** JSON.stringify fails on a value that is nested too deeply; its cell stays empty. */
function textOf(value: object): string | null {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

function ageCell(timestamp: string, nowMs: number): string {
  if (timestamp === '' || timestamp.startsWith('0001-01-01T00:00:00')) return '<unknown>';
  const timeMs = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/.test(timestamp) ? Date.parse(timestamp) : Number.NaN;
  return Number.isNaN(timeMs) ? '<invalid>' : formatAge(nowMs - timeMs);
}
