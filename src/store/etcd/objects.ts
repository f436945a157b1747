/** Serves objects and canonical paths from the published index. */
import type { CanonicalPath, ClusterName } from '../../domain/cluster.js';
import type { Key } from '../../domain/key.js';
import type { StoredObject } from '../../domain/object.js';
import type { Clock } from '../../domain/ports.js';
import type { Resource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import { matches, type Scope } from '../../domain/scope.js';
import type { ShardName } from '../../domain/shard.js';
import type { CanonicalPaths, Objects, Revisions, Snapshot } from '../../domain/store-port.js';
import { assertCovered, type SnapshotPins } from '../compactor.js';
import type { SnapshotLimits } from '../store-options.js';
import type { BodyReader } from './body-reader.js';
import type { HistoryWindow } from './history-window.js';
import type { ClusterOnShard } from './published-paths.js';
import type { PublishedState } from './published-state.js';
import { EtcdSnapshot } from './snapshot.js';

export type EtcdObjectsParts = Readonly<{
  published: PublishedState;
  history: HistoryWindow;
  reader: BodyReader;
  revisions: Revisions;
  pins: SnapshotPins;
  clock: Clock;
}>;

export class EtcdObjects implements Objects, CanonicalPaths {
  readonly #parts: EtcdObjectsParts;
  readonly #limits: SnapshotLimits;

  constructor(parts: EtcdObjectsParts, limits: SnapshotLimits) {
    this.#parts = parts;
    this.#limits = limits;
  }

  async get(key: Key): Promise<StoredObject | undefined> {
    const { published, reader } = this.#parts;
    const held = published.objects.get(key);
    return held && (await reader.read([held], published.revision))[0];
  }

  async find(scope: Scope): Promise<readonly StoredObject[]> {
    const { published, reader } = this.#parts;
    return reader.read(published.objects.valuesAt(scope), published.revision);
  }

  async shardsWith({ resource, ...place }: Omit<Key, 'shard'>): Promise<readonly ShardName[]> {
    return [...this.#parts.published.objects.valuesAt({ ...resource, ...place, shard: '*' })].map(({ key }) => key.shard);
  }

  snapshot(scope: Scope, revision: Revision): Snapshot {
    const { published, history, reader, revisions, pins, clock } = this.#parts;
    const parts = { objects: published.objects, history, reader, ...pins.cover(revisions, revision, clock.now()) };
    return new EtcdSnapshot(scope, revision, parts, this.#limits);
  }

  async count(scope: Scope, after: Key | undefined, max: number): Promise<number | undefined> {
    let [examined, counted] = [0, 0];
    for (const { key } of this.#parts.published.objects.scan(scope, after)) {
      examined += 1;
      if (examined > max) return undefined;
      if (matches(scope, key)) counted += 1;
    }
    return counted;
  }

  async resources(): Promise<readonly Resource[]> {
    return this.#parts.published.objects.resources;
  }

  async clustersAt(path: CanonicalPath): Promise<readonly ClusterName[]> {
    return this.#parts.published.paths.clustersAt(path);
  }

  async ownersOf(path: CanonicalPath): Promise<readonly ClusterName[]> {
    return this.#parts.published.paths.ownersOf(path);
  }

  async pathsOf(places: readonly ClusterOnShard[], at?: Revision): Promise<readonly (CanonicalPath | undefined)[]> {
    const { history, published, revisions } = this.#parts;
    if (at !== undefined) assertCovered(revisions, at);
    const moves = at === undefined ? [] : history.movesSince(at);
    return places.map((place) => {
      const first = moves.find(({ key }) => key.shard === place.shard && key.cluster === place.cluster);
      return first === undefined ? published.paths.pathOf(place) : first.movedPath?.before;
    });
  }
}
