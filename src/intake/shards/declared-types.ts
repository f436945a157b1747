/**
 * Updates the catalogue from the ClusterCachedResources in the store. A declared type is served as
 * soon as its declaration is published. When the last declaration of an identity is deleted, the
 * type's objects are dropped, then its watches end. Watches also end when the kind, the scope or a
 * version of their type changes.
 *
 * T1 A type is dropped only while nothing declares it. The drop removes objects written up to the
 *    revision at which this server saw no declaration. A write after a new declaration has a later
 *    revision, even if another server of the same etcd acknowledges it while this one lags. A PUT
 *    that changes nothing writes nothing, so the object that the PUT found may be dropped.
 * T2 No object of an undeclared type stays. The drop is repeated until no object is left, whichever
 *    server removes them. A write that was admitted earlier, and is stored after a drop, causes
 *    another drop.
 * Bounds: one removal is under way, and at most one more of each type waits behind it.
 */
import type { Catalogue, ServedType } from '../../domain/catalogue/catalogue.js';
import { declaring, formatDeclarationKey, isDeclaring } from '../../domain/catalogue/declaration.js';
import type { Change, Commit } from '../../domain/change.js';
import type { Key } from '../../domain/key.js';
import { pause } from '../../domain/base/promises.js';
import type { Clock, Subscription, Watches } from '../../domain/ports.js';
import type { Commits, Objects, PushLane, Writer, Revisions } from '../../domain/store-port.js';
import { formatResource, type Resource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import type { Scope } from '../../domain/scope.js';
import { snapshotPages } from '../../domain/snapshot-pages.js';
import type { Log } from '../../diagnostics/log.js';
import type { PushSessions } from '../push/push-sessions.js';

export type DeclaredTypesParts = Readonly<{
  catalogue: Catalogue;
  objects: Objects;
  revisions: Revisions;
  writer: Pick<Writer, 'lane'>;
  commits: Commits;
  watches: Pick<Watches, 'endOf'>;
  sessions: Pick<PushSessions, 'drop' | 'declared'>;
  clock: Clock;
  log: Log;
}>;

const retryMs = 10_000;
/**
 * How often this server checks a type that another server is removing. That server may stop before
 * it is done.
 */
const checkIntervalMs = 1_000;

export class DeclaredTypes {
  readonly #parts: DeclaredTypesParts;
  readonly #lane: PushLane;
  readonly #subscription: Subscription;
  /** Types whose removal has not begun, each in the form in which it was served. */
  readonly #waiting = new Map<string, ServedType | undefined>();
  #removals: Promise<void> = Promise.resolve();
  readonly #closing = new AbortController();
  /**
   * Set while the declarations in the store are read. `places`: declarations that a commit has
   * changed since, so the read skips them. `types`: types that may be undeclared, which is known
   * only after the read.
   */
  #opening: Readonly<{ places: Set<string>; types: Map<string, Resource> }> | undefined = { places: new Set(), types: new Map() };

  private constructor(parts: DeclaredTypesParts) {
    this.#parts = parts;
    this.#lane = parts.writer.lane();
    this.#subscription = parts.commits.subscribe((commit) => this.#follow(commit));
  }

  /**
   * `held`: the types that have objects in the store. If one of them is not declared, a server died
   * while it removed that type.
   */
  static async open(parts: DeclaredTypesParts, held: readonly Resource[]): Promise<DeclaredTypes> {
    const opened = new DeclaredTypes(parts);
    const { published } = parts.revisions;
    const declarations = parts.objects.snapshot(everything(declaring), published);
    for await (const objects of snapshotPages(declarations))
      for (const { key, body } of objects) {
        const place = placeOf(key);
        if (!opened.#opening?.places.has(formatDeclarationKey(place))) parts.catalogue.declare(place, body.bytes, published);
      }
    const touched = opened.#opening?.types.values() ?? [];
    opened.#opening = undefined;
    for (const resource of [...held, ...touched]) if (opened.#isGone(resource)) opened.#remove(resource);
    return opened;
  }

  /**
   * Begins no further removal; the next start does. Resolves when the store has answered the
   * removal under way, at the latest when the store closes.
   */
  close(): Promise<void> {
    this.#closing.abort();
    this.#subscription.cancel();
    return this.#removals;
  }

  #follow({ changes, revision }: Commit): void {
    for (const change of changes) {
      const { resource } = change.key;
      if (isDeclaring(resource)) this.#replace(change, revision);
      else if (change.kind === 'put' && this.#isGone(resource)) this.#remove(resource);
    }
    if (changes.some(({ key }) => isDeclaring(key.resource))) this.#parts.sessions.declared();
  }

  #isGone(resource: Resource): boolean {
    return resource.identity !== '' && !this.#parts.catalogue.declares(resource);
  }

  #replace(change: Change, revision: Revision): void {
    const { catalogue } = this.#parts;
    const place = placeOf(change.key);
    this.#opening?.places.add(formatDeclarationKey(place));
    const ended =
      change.kind === 'put' ? catalogue.declare(place, change.object.body.bytes, revision) : catalogue.withdraw(place, revision);
    for (const former of ended) {
      const { group, resource, identity } = former;
      this.#remove({ group, resource, identity }, former);
    }
  }

  /** `former`: the type in the form in which it was served, which clients may watch. */
  #remove(resource: Resource, former?: ServedType): void {
    const text = formatResource(resource);
    if (this.#opening !== undefined) return void this.#opening.types.set(text, resource);
    const isWaiting = this.#waiting.has(text);
    this.#waiting.set(text, this.#waiting.get(text) ?? former);
    if (isWaiting) return;
    this.#removals = this.#removals
      .then(() => this.#removeAll(resource))
      .catch((error: unknown) => this.#parts.log.error('type.removal-failed', { ...resource, error }));
  }

  async #removeAll(resource: Resource): Promise<void> {
    const { catalogue, objects, revisions, watches, sessions, clock, log } = this.#parts;
    const { signal } = this.#closing;
    const text = formatResource(resource);
    const former = this.#waiting.get(text);
    this.#waiting.delete(text);
    while (!signal.aborted && !catalogue.declares(resource)) {
      const [outcome] = await this.#lane.push([{ kind: 'drop', resource, through: revisions.published }]);
      if (outcome?.kind === 'unavailable') {
        if (signal.aborted) return;
        log.warn('type.removal-delayed', { ...resource, message: outcome.refusal.message });
        await pause(clock, retryMs, signal);
        continue;
      }
      if (outcome?.kind !== 'swept') throw new Error(`dropping a type ended as ${outcome?.kind}`);
      const { removed } = outcome;
      sessions.drop(resource);
      const isLeft = (await objects.count(everything(resource), undefined, 0)) !== 0;
      if (removed > 0 || !isLeft) log.info('type.removed', { ...resource, objects: removed });
      if (!isLeft) break;
      await pause(clock, checkIntervalMs, signal);
      // Moves the type to the end of the queue, because the server that removes it may be waiting
      // for another type of this queue.
      return this.#remove(resource, former);
    }
    const isServed = former === undefined ? catalogue.declares(resource) : catalogue.covers(former);
    if (!signal.aborted && !isServed) watches.endOf(resource);
  }
}

function everything({ group, resource, identity }: Resource): Scope {
  return { group, resource, identity, shard: '*', cluster: '*' };
}

function placeOf({ shard, cluster, name }: Key): { shard: string; cluster: string; name: string } {
  return { shard, cluster, name };
}
