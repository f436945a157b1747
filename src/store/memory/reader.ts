/** Reads a memory disk: the present, an earlier revision, and the changes between two. */
import type { Change } from '../../domain/change.js';
import { expired, Refused } from '../../domain/errors.js';
import type { Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import { formatResource, type Resource } from '../../domain/resource.js';
import type { LogChunk, Touch } from '../../domain/store-port.js';
import type { Revision } from '../../domain/revision.js';
import { matches, type Scope } from '../../domain/scope.js';
import type { MemoryDisk } from './disk.js';
import type { MemoryRow } from './log.js';
import type { MemorySlice } from './slices.js';

const chunkRowsMax = 256;
const chunkBytesMax = 256 * 1024;

type Range = Readonly<{ after: Revision; upTo: Revision }>;

/** Throws when history above `position` is no longer whole; never resolves when the process has died. */
export type Covered = (position: Revision) => Promise<void> | undefined;

export class MemoryReader {
  readonly #disk: MemoryDisk;
  readonly #format: (revision: Revision) => string;

  constructor(disk: MemoryDisk, format: (revision: Revision) => string) {
    this.#disk = disk;
    this.#format = format;
  }

  get(key: Key): StoredObject | undefined {
    return this.object(this.#disk.slices.held(key));
  }

  find(scope: Scope): readonly StoredObject[] {
    const { cluster, namespace, name } = scope;
    if (cluster === '*' || namespace === undefined || name === undefined) throw new Error('a place names cluster, namespace and name');
    return this.#slicesOf(scope).flatMap(({ slice }) => this.get({ ...slice, cluster, namespace, name }) ?? []);
  }

  /** What a list at `revision` holds, in key order. */
  standing(scope: Scope, revision: Revision): readonly MemoryRow[] {
    const { log } = this.#disk;
    const found: MemoryRow[] = [];
    const look = (row: MemoryRow): void => {
      const held = matches(scope, row.key) ? log.heldAt(row, revision) : undefined;
      if (held !== undefined) found.push(held);
    };
    for (const { objects } of this.#slicesOf(scope)) for (const row of objects.values()) look(row);
    for (const row of log.rows({ after: revision, upTo: log.revision })) if (row.body === undefined) look(row);
    const order = orderOf(scope);
    return found.toSorted((a, b) => order(a.key, b.key));
  }

  resources(): readonly Resource[] {
    const found = new Map<string, Resource>();
    for (const { slice, objects } of this.#disk.slices.all())
      if (objects.size > 0) found.set(formatResource(slice.resource), slice.resource);
    return [...found.values()];
  }

  count(scope: Scope, after: Key | undefined, max: number): number | undefined {
    const order = orderOf(scope);
    const wider = { ...scope, namespace: undefined, name: undefined };
    const keys = this.#slicesOf(scope).flatMap(({ objects }) => [...objects.values()].map(({ key }) => key));
    const looked = keys.filter((key) => matches(wider, key) && (after === undefined || order(key, after) > 0));
    return looked.length > max ? undefined : looked.filter((key) => matches(scope, key)).length;
  }

  /** The first changes of the range that are wanted. */
  async chunk(range: Range, covered: Covered, isWanted: (key: Key) => boolean = () => true): Promise<LogChunk> {
    await covered(range.after);
    const changes: Change[] = [];
    let bytes = 0;
    for (const row of this.#disk.log.rows(range)) {
      if (!isWanted(row.key)) continue;
      changes.push(this.change(row));
      bytes += row.body?.bytes.length ?? 0;
      if (changes.length >= chunkRowsMax || bytes >= chunkBytesMax) return { changes, upTo: row.revision };
    }
    return { changes, upTo: range.upTo };
  }

  async *touched(scope: Scope, range: Range, covered: Covered): AsyncGenerator<readonly Touch[]> {
    await covered(range.upTo);
    const { log } = this.#disk;
    if (range.after < range.upTo && range.after < log.rememberedFrom)
      throw new Refused(expired(`what was deleted since ${this.#format(range.after)} is forgotten`));
    const rows = [...log.rows(range)].filter(({ key }) => matches(scope, key)).toReversed();
    const touched = rows.map((row): Touch => ({
      key: row.key,
      kind: row.body === undefined ? 'delete' : 'put',
      object: () => this.object(row),
    }));
    if (touched.length > 0) yield touched;
  }

  change(row: MemoryRow): Change {
    const { key, revision, replaced, movedPath } = row;
    // Compaction may take the replaced row, so the first call keeps it.
    let read: { previous: StoredObject | undefined } | undefined;
    const previous = (): StoredObject | undefined => (read ??= { previous: this.object(this.#disk.log.row(replaced)) }).previous;
    const moved = movedPath === undefined ? {} : { movedPath };
    const object = this.object(row);
    if (object === undefined) return { kind: 'delete', key, revision, resourceVersion: this.#format(revision), previous, ...moved };
    return { kind: 'put', key, revision, object, created: replaced === 0, previous, ...moved };
  }

  object(row: MemoryRow | undefined): StoredObject | undefined {
    if (row?.body === undefined) return undefined;
    const { key, revision, body } = row;
    return { key, revision, resourceVersion: this.#format(revision), body };
  }

  #slicesOf({ group, resource, identity, shard }: Scope): readonly MemorySlice[] {
    const { slices } = this.#disk;
    if (identity === '*') return slices.all().filter(({ slice: { resource: of } }) => of.group === group && of.resource === resource);
    if (shard === '*') return slices.ofResource({ group, resource, identity });
    const only = slices.of({ shard, resource: { group, resource, identity } });
    return only === undefined ? [] : [only];
  }
}

/** The order of a scope's pages. One logical cluster on all shards has an order of its own, as in an engine with an index for it. */
export function orderOf({ shard, cluster }: Scope): (a: Key, b: Key) => number {
  const isByCluster = shard === '*' && cluster !== '*';
  const parts = isByCluster ? (['namespace', 'name', 'shard'] as const) : (['shard', 'cluster', 'namespace', 'name'] as const);
  return (a, b) => {
    if (a.resource.identity !== b.resource.identity) return a.resource.identity < b.resource.identity ? -1 : 1;
    for (const part of parts) if (a[part] !== b[part]) return a[part] < b[part] ? -1 : 1;
    return 0;
  };
}
