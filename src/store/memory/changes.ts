/**
 * Writes the changes of one commit to a memory disk, and keeps up to date what follows from them: slices, canonical paths, and the
 * survivors of deletes. Revisions are gapless.
 */
import type { Digest } from '../../domain/digest.js';
import type { CanonicalPath } from '../../domain/cluster.js';
import type { Key } from '../../domain/key.js';
import type { Body } from '../../domain/object.js';
import type { Revision } from '../../domain/revision.js';
import type { MemoryDisk } from './disk.js';
import type { MemoryRow } from './log.js';

export type MemoryChangesParts = Readonly<{
  disk: MemoryDisk;
  digestOf: (key: Key, body: Body) => Digest;
  /** The store has written an object again without a push for it. */
  rewritten: (from: MemoryRow, to: MemoryRow) => void;
}>;

export class MemoryChanges {
  readonly #parts: MemoryChangesParts;
  readonly #nowMs: number;
  readonly #rows: MemoryRow[] = [];
  readonly #movedPaths: string[] = [];

  constructor(parts: MemoryChangesParts, nowMs: number) {
    this.#parts = parts;
    this.#nowMs = nowMs;
  }

  /** In rising revision. */
  get rows(): readonly MemoryRow[] {
    return this.#rows;
  }

  /** Canonical paths whose logical clusters changed. */
  get movedPaths(): readonly string[] {
    return this.#movedPaths;
  }

  get revision(): Revision {
    return this.#parts.disk.log.revision;
  }

  held(key: Key): MemoryRow | undefined {
    return this.#parts.disk.slices.held(key);
  }

  put(key: Key, body: Body, path: CanonicalPath | undefined): MemoryRow {
    const held = this.held(key);
    const movedPath = this.#parts.disk.paths.put(key, path, held === undefined);
    return this.#append({ key, body, movedPath, digest: this.#parts.digestOf(key, body) }, held);
  }

  delete(held: MemoryRow): MemoryRow {
    const { key, digest } = held;
    const row = this.#append({ key, body: undefined, movedPath: this.#parts.disk.paths.delete(key), digest }, held);
    const survivor = this.#survivor(key);
    if (survivor !== undefined) this.#rewrite(survivor);
    return row;
  }

  /** Informers' keys have no shard, so a surviving namesake is written again behind the delete: informers then end with it. */
  #survivor(key: Key): MemoryRow | undefined {
    let newest: MemoryRow | undefined;
    for (const row of this.#parts.disk.slices.namesakes(key)) if (row.revision > (newest?.revision ?? 0)) newest = row;
    return newest;
  }

  #rewrite(survivor: MemoryRow): void {
    const { key, body, digest } = survivor;
    this.#parts.rewritten(survivor, this.#append({ key, body, digest, movedPath: undefined }, survivor));
  }

  #append(change: Omit<MemoryRow, 'revision' | 'replaced'>, held: MemoryRow | undefined): MemoryRow {
    const { log, slices } = this.#parts.disk;
    const row = log.append({ ...change, replaced: held?.revision ?? 0 });
    slices.change(row, held, this.#nowMs);
    this.#rows.push(row);
    const { before, after } = row.movedPath ?? {};
    for (const path of [before, after]) if (path !== undefined) this.#movedPaths.push(path);
    return row;
  }
}
