/**
 * Initial state on its way to readers: a scope at a revision, as encoded chunks. Readers that ask for the same thing at
 * the same time share one snapshot and the bytes of its pages, so that many informers starting together cost one
 * reading and one encoding.
 *
 *   informer 1 ──page 1──page 2──page 3──▶        the first reader of a page reads and encodes it; it is kept while
 *   informer 2 ──────────page 1──page 2──▶        `sharedBytesMax` lasts; a later reader reads it again
 *
 * Bounds: `sharedBytesMax` of encoded pages over all snapshots, the oldest leave first; none outlives its last reader.
 * The event loop gets a turn before every page, and after some of them (pace.ts).
 */
import type { Key } from '../domain/key.js';
import { isSelected } from '../domain/object-metadata.js';
import { formatClientKey } from '../domain/key.js';
import type { ListEncoding, Objects, Snapshot, Snapshots } from '../domain/ports.js';
import type { Revision } from '../domain/revision.js';
import { formatScope, type Scope } from '../domain/scope.js';
import { formatSelector, type Selector } from '../domain/selector.js';
import type { Pace } from './pace.js';

type Page = Readonly<{ bytes: Uint8Array; next: Key | undefined }>;

type Shared = { readonly snapshot: Snapshot; readonly pages: Map<string, Promise<Page>>; readers: number };

export class SharedSnapshots implements Snapshots {
  readonly #objects: Objects;
  readonly #sharedBytesMax: number;
  readonly #pace: Pace;
  readonly #onShared: (chunks: number) => void;
  readonly #open = new Map<string, Shared>();
  /** Every kept page, oldest first. */
  readonly #kept = new Map<Promise<Page>, { pages: Map<string, Promise<Page>>; at: string; bytes: number }>();
  #keptBytes = 0;

  constructor({ objects, pace }: { objects: Objects; pace: Pace }, limits: { sharedBytesMax: number }, onShared: (chunks: number) => void) {
    this.#objects = objects;
    this.#sharedBytesMax = limits.sharedBytesMax;
    this.#pace = pace;
    this.#onShared = onShared;
  }

  async *chunks(scope: Scope, selector: Selector, revision: Revision, encoding: ListEncoding): AsyncGenerator<Uint8Array> {
    const id = `${revision}\n${formatView(scope, selector, encoding)}`;
    const shared = this.#join(id, scope, revision);
    try {
      let after: Key | undefined;
      do {
        const page = await this.#page(shared, after, selector, encoding);
        await this.#pace.turn(page.bytes.length);
        if (page.bytes.length > 0) yield page.bytes;
        after = page.next;
      } while (after !== undefined);
    } finally {
      this.#leave(id, shared);
    }
  }

  #join(id: string, scope: Scope, revision: Revision): Shared {
    const known = this.#open.get(id);
    const shared = known ?? { snapshot: this.#objects.snapshot(scope, revision), pages: new Map(), readers: 0 };
    shared.readers += 1;
    this.#open.set(id, shared);
    return shared;
  }

  #leave(id: string, shared: Shared): void {
    shared.readers -= 1;
    if (shared.readers > 0) return;
    this.#open.delete(id);
    for (const page of shared.pages.values()) this.#forget(page);
    shared.snapshot.close();
  }

  #page(shared: Shared, after: Key | undefined, selector: Selector, encoding: ListEncoding): Promise<Page> {
    const at = after === undefined ? '' : `${after.shard}|${formatClientKey(after)}`;
    const known = shared.pages.get(at);
    if (known !== undefined) {
      this.#onShared(1);
      return known;
    }
    const page = read(shared.snapshot, after, selector, encoding);
    shared.pages.set(at, page);
    void page.then(
      ({ bytes }) => this.#keep(page, { pages: shared.pages, at, bytes: bytes.length }),
      () => shared.pages.delete(at),
    );
    return page;
  }

  #keep(page: Promise<Page>, kept: { pages: Map<string, Promise<Page>>; at: string; bytes: number }): void {
    if (kept.pages.get(kept.at) !== page) return;
    this.#kept.set(page, kept);
    this.#keptBytes += kept.bytes;
    for (const oldest of this.#kept.keys()) {
      if (this.#keptBytes <= this.#sharedBytesMax) break;
      this.#forget(oldest);
    }
  }

  #forget(page: Promise<Page>): void {
    const kept = this.#kept.get(page);
    if (kept === undefined) return;
    kept.pages.delete(kept.at);
    this.#kept.delete(page);
    this.#keptBytes -= kept.bytes;
  }
}

/** The same text for readers who get the same bytes at one revision. */
export function formatView(scope: Scope, selector: Selector, encoding: ListEncoding): string {
  return [encoding.id, formatScope(scope), formatSelector(selector)].join('\n');
}

async function read(snapshot: Snapshot, after: Key | undefined, selector: Selector, encoding: ListEncoding): Promise<Page> {
  const { objects, next } = await snapshot.page(after);
  const selected = objects.filter((object) => isSelected(object, selector));
  return { bytes: selected.length === 0 ? new Uint8Array(0) : encoding.encode(selected), next };
}
