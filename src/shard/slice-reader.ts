/**
 * One slice of a shard: reads a collection, selects objects, and converts them to the pushed form.
 * The conversion of each read is a pure step that keeps nothing of an object.
 *
 * A sync by a watch may include changes of objects that it has just sent. So such an object may
 * have to be removed again before `end`.
 *
 * An object whose annotation names another shard is a copy from a cache. It is treated as absent,
 * so that it is not pushed as this shard's own.
 */
import type { ShardName } from '../domain/shard.js';
import type { SliceSource, Outgoing } from '../sender/source.js';
import type { KubeReader, Read } from '../kube/kube-reader.js';
import type { Selected } from './selection.js';
import type { SourceObject } from '../kube/source-object.js';

/** Sees the shard's own objects of a slice, before selection. */
export interface ReadObserver {
  observe(read: Read): void;
}

/**
 * How a type is pushed. `version`: the API version of the bodies. `select`: decides about an
 * object. Instead of 'put', it returns the function that builds the body.
 */
export type PushedForm = Readonly<{
  version: string;
  select: (object: SourceObject) => Exclude<Selected, 'put'> | (() => Uint8Array);
}>;

/**
 * `read`: called with the number of objects and deletions in each batch. `onSkipped`: called with
 * each object that names another shard.
 */
export type SliceReaderParts = Readonly<{
  reader: KubeReader;
  read: (objects: number) => void;
  onSkipped: (object: SourceObject) => void;
}>;

export type SliceReaderOptions = Readonly<{ shard: ShardName; form: PushedForm; onlooker?: ReadObserver | undefined }>;

export class SliceReader implements SliceSource {
  readonly #parts: SliceReaderParts;
  readonly #options: SliceReaderOptions;

  constructor(parts: SliceReaderParts, options: SliceReaderOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  get connected(): boolean {
    return this.#parts.reader.connected;
  }

  async *open(signal: AbortSignal): AsyncGenerator<readonly Outgoing[], void> {
    const { form, onlooker } = this.#options;
    let syncing = false;
    for await (const all of this.#parts.reader.read(signal)) {
      this.#parts.read(all.filter((read) => 'object' in read).length);
      const reads = all.flatMap((read) => this.#own(read));
      const batch: Outgoing[] = [];
      for (const read of reads) {
        if (read.kind === 'begin') syncing = true;
        if (read.kind === 'end') syncing = false;
        const outgoing = send(read, syncing, form);
        if (outgoing !== undefined) batch.push(outgoing);
      }
      if (batch.length > 0) yield batch;
      // Calls the onlooker after sending, so that an object's effects follow the object.
      if (onlooker !== undefined) for (const read of reads) onlooker.observe(read);
    }
  }

  /**
   * An object whose change names another shard is removed, because it may have been pushed before.
   */
  #own(read: Read): readonly Read[] {
    if (!('object' in read)) return [read];
    const { object } = read;
    if (object.shard === '' || object.shard === this.#options.shard) return [read];
    this.#parts.onSkipped(object);
    return read.kind === 'object' && read.changed ? [{ kind: 'deleted', object }] : [];
  }
}

function send(read: Read, syncing: boolean, form: PushedForm): Outgoing | undefined {
  switch (read.kind) {
    case 'begin':
      // The revision is known only at the end.
      return { kind: 'begin', revision: '' };
    case 'end':
      return { kind: 'end', revision: read.revision };
    case 'bookmark':
      return undefined;
    case 'deleted':
      return form.select(read.object) === 'ignored' ? undefined : gone(read.object);
    case 'object': {
      const selected = form.select(read.object);
      if (selected === 'keep') return syncing ? put(read.object, form, undefined) : undefined;
      if (selected === 'gone') return read.changed ? gone(read.object) : undefined;
      return selected === 'ignored' ? undefined : put(read.object, form, selected());
    }
  }
}

function put({ cluster, namespace, name, resourceVersion }: SourceObject, { version }: PushedForm, body: Uint8Array | undefined): Outgoing {
  return { kind: 'put', version, object: { cluster, namespace, name, sourceVersion: resourceVersion, body } };
}

function gone({ cluster, namespace, name }: SourceObject): Outgoing {
  return { kind: 'delete', key: { cluster, namespace, name } };
}
