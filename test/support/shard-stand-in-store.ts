/**
 * The store of a stand-in for a shard: objects, and every change since the last compaction. All
 * types share one revision, as in etcd.
 */
import { randomUUID } from 'node:crypto';
import type { KubeObject } from './kube-client.js';

/** `identity`: a request for all logical clusters must name it; '' means that it need not. */
export type StandInType = Readonly<{ group: string; version: string; resource: string; kind: string; identity: string }>;

export type StandInEvent = Readonly<{
  revision: number;
  type: StandInType;
  /** Undefined when the object did not exist; `after`: when it no longer exists. */
  before: KubeObject | undefined;
  after: KubeObject | undefined;
}>;

export type StandInScope = Readonly<{ type: StandInType; cluster: string; labels: Readonly<Record<string, string>> }>;

export class ShardStandInStore {
  #revision = 100;
  #compacted = 0;
  readonly #types = new Map<string, StandInType>();
  /** By type, then by place. */
  readonly #objects = new Map<string, Map<string, KubeObject>>();
  #history: StandInEvent[] = [];
  readonly #listeners = new Set<(event: StandInEvent) => void>();

  get revision(): number {
    return this.#revision;
  }

  /** The store refuses watches from before this revision. */
  get compacted(): number {
    return this.#compacted;
  }

  serve(type: StandInType): void {
    this.#types.set(nameOf(type), type);
  }

  /** Stops serving the type; its objects stay until the type is served again. */
  hide(resource: string): void {
    this.#types.delete(resource);
  }

  typeAt(group: string, version: string, resource: string): StandInType | undefined {
    return [...this.#types.values()].find((type) => type.group === group && type.version === version && type.resource === resource);
  }

  /**
   * Writes an object as an API server would: with a new resourceVersion, and a uid if it has none.
   */
  put(resource: string, cluster: string, object: KubeObject): KubeObject {
    const type = this.#typeOf(resource);
    const objects = this.#objectsOf(type);
    const place = placeOf(cluster, object);
    const before = objects.get(place);
    this.#revision += 1;
    const after: KubeObject = {
      ...object,
      metadata: {
        ...object.metadata,
        uid: object.metadata.uid ?? before?.metadata.uid ?? randomUUID(),
        creationTimestamp: object.metadata.creationTimestamp ?? '2026-11-20T22:53:25Z',
        annotations: { ...object.metadata.annotations, 'kcp.io/cluster': cluster },
        resourceVersion: String(this.#revision),
      },
    };
    objects.set(place, after);
    this.#send({ revision: this.#revision, type, before, after });
    return after;
  }

  delete(resource: string, cluster: string, name: string, namespace = ''): void {
    const type = this.#typeOf(resource);
    const objects = this.#objectsOf(type);
    const place = `${cluster}|${namespace}|${name}`;
    const before = objects.get(place);
    if (before === undefined) throw new Error(`there is no ${resource} ${place}`);
    objects.delete(place);
    this.#revision += 1;
    this.#send({ revision: this.#revision, type, before, after: undefined });
  }

  /** The objects in the scope, sorted by place. */
  list({ type, cluster, labels }: StandInScope): readonly (readonly [place: string, object: KubeObject])[] {
    return [...this.#objectsOf(type)]
      .filter(([place, object]) => (cluster === '*' || place.startsWith(`${cluster}|`)) && hasLabels(object, labels))
      .toSorted(([left], [right]) => (left < right ? -1 : 1));
  }

  all(resource: string): readonly KubeObject[] {
    return this.list({ type: this.#typeOf(resource), cluster: '*', labels: {} }).map(([, object]) => object);
  }

  compact(): void {
    this.#compacted = this.#revision;
    this.#history = [];
  }

  /**
   * Goes back to an earlier revision of its history, like an etcd restored from a snapshot.
   * Watchers get no event.
   */
  restore(revision: number): void {
    for (const { type, before, after } of this.since(revision).toReversed()) {
      const object = before ?? after;
      if (object === undefined) continue;
      const place = placeOf(object.metadata.annotations?.['kcp.io/cluster'] ?? '', object);
      if (before === undefined) this.#objectsOf(type).delete(place);
      else this.#objectsOf(type).set(place, before);
    }
    this.#history = this.#history.filter((event) => event.revision <= revision);
    this.#revision = revision;
  }

  since(revision: number): readonly StandInEvent[] {
    return this.#history.filter((event) => event.revision > revision);
  }

  subscribe(listener: (event: StandInEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #send(event: StandInEvent): void {
    this.#history.push(event);
    for (const listener of this.#listeners) listener(event);
  }

  #typeOf(resource: string): StandInType {
    const type = this.#types.get(resource);
    if (type === undefined) throw new Error(`the stand-in does not serve ${resource}`);
    return type;
  }

  #objectsOf(type: StandInType): Map<string, KubeObject> {
    const name = nameOf(type);
    const objects = this.#objects.get(name) ?? new Map<string, KubeObject>();
    this.#objects.set(name, objects);
    return objects;
  }
}

/**
 * The event that a watch of that scope gets: an object that gains or loses the labels is added or
 * deleted.
 */
export function seenFrom(
  { type, cluster, labels }: StandInScope,
  event: StandInEvent,
): Readonly<{ type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: KubeObject }> | undefined {
  if (nameOf(event.type) !== nameOf(type)) return undefined;
  const selected = (object: KubeObject | undefined): boolean =>
    object !== undefined && (cluster === '*' || object.metadata.annotations?.['kcp.io/cluster'] === cluster) && hasLabels(object, labels);
  const { before, after } = event;
  if (after !== undefined && selected(after)) return { type: selected(before) ? 'MODIFIED' : 'ADDED', object: after };
  if (before === undefined || !selected(before)) return undefined;
  return { type: 'DELETED', object: { ...before, metadata: { ...before.metadata, resourceVersion: String(event.revision) } } };
}

/** For example `apiexports.apis.kcp.io`; the core group has no suffix. */
function nameOf({ group, resource }: StandInType): string {
  return group === '' ? resource : `${resource}.${group}`;
}

function placeOf(cluster: string, { metadata }: KubeObject): string {
  return `${cluster}|${metadata.namespace ?? ''}|${metadata.name ?? ''}`;
}

function hasLabels(object: KubeObject, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(labels).every(([label, value]) => object.metadata.labels?.[label] === value);
}
