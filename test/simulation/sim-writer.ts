/**
 * A shard's plain writer, like a kcp that does not push. Over plain HTTP it makes a cache's copy of
 * the shard equal to its own objects, and compares both again after every change. While the shard's
 * via is another neighbour, it waits until the cache lets it take the shard over.
 */
import { parseCanonicalPath } from '../../src/domain/cluster.js';
import type { Mutation } from '../../src/domain/mutation.js';
import type { StoredObject } from '../../src/domain/object.js';
import { pause } from '../../src/domain/base/promises.js';
import type { Store } from '../../src/domain/store-port.js';
import { formatResource, type Resource } from '../../src/domain/resource.js';
import type { ShardName } from '../../src/domain/shard.js';
import { Notifier } from '../../src/sender/notifier.js';
import { metadataOf, pathAnnotation, type ModelObject } from './model-rule.js';
import type { PartyPlace, PlainParty } from './sim-party.js';

/** `beat`: an object that it writes anew after each move. */
export type SimWriterOptions = Readonly<{ shard: ShardName; resources: readonly Resource[]; beat: (number: number) => ModelObject }>;

const retryMs = 1_000;
/**
 * A cache that does not know the shard may still hear of it. Until then, to begin the shard a
 * second time would be a conflict.
 */
const unknownMs = 1_200_000;

const plainWriter = { user: 'kcp', groups: ['system:masters'] };

export class SimWriter implements PlainParty {
  readonly shard: ShardName;
  readonly #options: SimWriterOptions;
  readonly #objects = new Map<string, ModelObject>();
  readonly #notifier = new Notifier();
  #session = new AbortController();
  #isQuiet = false;
  #beats = 0;
  #hasMoved = false;

  constructor(options: SimWriterOptions) {
    this.shard = options.shard;
    this.#options = options;
    this.#beat();
  }

  get objects(): readonly ModelObject[] {
    return [...this.#objects.values()];
  }

  get isQuiet(): boolean {
    return this.#isQuiet;
  }

  /** Whether it has written nothing yet at its new cache. */
  get isMoving(): boolean {
    return this.#hasMoved;
  }

  put(object: ModelObject): void {
    this.#objects.set(textOf(object), object);
    this.#look();
  }

  remove(object: Pick<ModelObject, 'key'>): void {
    if (this.#objects.delete(textOf(object))) this.#look();
  }

  /** Must be called before the writer moves to another cache. */
  move(): void {
    this.#hasMoved = true;
  }

  async run({ store, known, plainWrites, clock }: PartyPlace): Promise<void> {
    this.leave();
    const { signal } = this.#session;
    const { shard } = this;
    const beganMs = clock.now();
    const subscription = store.commits.subscribe(({ changes }) => {
      if (changes.some(({ key }) => key.shard === shard)) this.#look();
    });
    const following = store.state.follow(({ shards }) => {
      if (shards.some((state) => state.shard === shard)) this.#look();
    });
    while (!signal.aborted) {
      const seen = this.#notifier.notified;
      const via = known.shard(shard)?.via;
      const verdict = plainWrites.decide(shard, plainWriter);
      const mayBegin = via !== undefined || !this.#hasMoved || clock.now() - beganMs >= unknownMs;
      if (!mayBegin || verdict.kind === 'refused') {
        await pause(clock, retryMs, signal);
        continue;
      }
      if (via !== 'local') this.#beat();
      const isDone = await this.#write(store, verdict.as === 'takes');
      if (signal.aborted) break;
      if (!isDone || known.shard(shard)?.via !== 'local') continue;
      this.#hasMoved = false;
      this.#isQuiet = this.#notifier.notified === seen;
      await this.#notifier.after(seen, signal);
    }
    subscription.cancel();
    following.cancel();
  }

  leave(): void {
    this.#session.abort();
    this.#session = new AbortController();
    this.#isQuiet = false;
  }

  /** Returns whether the cache now holds the right objects. */
  async #write(store: Store, takes: boolean): Promise<boolean> {
    const held = new Map<string, StoredObject>();
    for (const { group, resource, identity } of this.#options.resources) {
      const snapshot = store.objects.snapshot({ group, resource, identity, shard: this.shard, cluster: '*' }, store.revisions.published);
      for (let after, isFirst = true; isFirst || after !== undefined; isFirst = false) {
        const page = await snapshot.page(after);
        for (const object of page.objects) held.set(textOf(object), object);
        after = page.next;
      }
      snapshot.close();
    }
    const mutations = [
      ...this.objects
        .filter((object) => !isSame(object, held.get(textOf(object))))
        .map((object) => putOf(object, held.get(textOf(object)))),
      ...[...held.values()].filter((object) => !this.#objects.has(textOf(object))).map(deleteOf),
    ];
    const outcomes = await Promise.all(mutations.map((mutation) => store.writer.submit(takes ? { ...mutation, takes } : mutation)));
    return outcomes.every(({ kind }) => kind === 'written');
  }

  #beat(): void {
    this.#beats += 1;
    const beat = this.#options.beat(this.#beats);
    this.#objects.set(textOf(beat), beat);
  }

  #look(): void {
    this.#isQuiet = false;
    this.#notifier.notify();
  }
}

function putOf({ key, body }: ModelObject, held: StoredObject | undefined): Mutation {
  const path = metadataOf(body).annotations[pathAnnotation];
  return { kind: 'put', key, body, path: path === undefined ? undefined : parseCanonicalPath(path), expect: held?.revision ?? 'absent' };
}

function deleteOf({ key, revision }: StoredObject): Mutation {
  return { kind: 'delete', key, expect: revision };
}

function isSame({ body }: ModelObject, held: StoredObject | undefined): boolean {
  return held !== undefined && Buffer.compare(body.bytes, held.body.bytes) === 0;
}

function textOf({ key: { resource, cluster, namespace, name } }: Pick<ModelObject, 'key'>): string {
  return `${formatResource(resource)}|${cluster}|${namespace}/${name}`;
}
