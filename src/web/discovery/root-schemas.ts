/**
 * The schemas of the built-in types, as shards have published them. kcp exports its own types from
 * logical cluster `root`, by APIExports that name APIResourceSchemas. Shards push both. The objects
 * are read on request, and again once an object of either type, or the table of types, has changed.
 *
 *   APIExport tenancy.kcp.io ──names──▶ v260519-96f2749.workspacetypes.tenancy.kcp.io
 *                                         │ on the same shard, in `root`
 *                                         └──describes──▶ WorkspaceType v1alpha1
 *
 * The first schema that describes a version counts, in the order of the APIExports' keys: name,
 * then shard. A caller who may read these documents may read the schemas too, because `authorize`
 * has a single right to read. Any shard can push such texts, but no decision depends on them.
 *
 * Bounds: at most `exportsMax` APIExports and `exportBytesMax` of them are read, and `triedMax`
 * schemas of one type. A text beyond `textBytesMax` is not kept, so all texts stay below two
 * megabytes. The event loop gets a turn before each object.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { ServedType } from '../../domain/catalogue/catalogue.js';
import { rootCluster } from '../../domain/cluster.js';
import type { Objects, Revisions } from '../../domain/store-port.js';
import { formatGroupResource, type Resource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import type { ShardName } from '../../domain/shard.js';
import { snapshotPages } from '../../domain/snapshot-pages.js';
import { formatSchema, schemaName, type SchemaTexts } from './openapi-schema.js';
import { exportType, parseResourceSchema, schemasNamedBy } from './resource-schema.js';

export type RootSchemasParts = Readonly<{
  /** Types without an identity. */
  types: () => readonly ServedType[];
  objects: Pick<Objects, 'get' | 'snapshot'>;
  revisions: Pick<Revisions, 'published'>;
  /** The revision of the newest change published to a type, or a later one. */
  changedAt: (type: Resource) => Revision;
}>;

const exportsMax = 1_000;
const exportBytesMax = 4 * 1024 * 1024;
const triedMax = 10;
const textBytesMax = 64 * 1024;

const schemaType: Resource = { group: 'apis.kcp.io', resource: 'apiresourceschemas', identity: '' };

type SchemaPlace = Readonly<{ shard: ShardName; name: string }>;

export class RootSchemas {
  readonly #parts: RootSchemasParts;
  #known: Readonly<{ types: readonly ServedType[]; changedAt: Revision; texts: SchemaTexts }> | undefined;
  #reading: Promise<void> | undefined;

  constructor(parts: RootSchemasParts) {
    this.#parts = parts;
  }

  async texts(): Promise<SchemaTexts> {
    // A reading that has already begun may miss the newest change.
    for (let readings = 0; readings < 2 && !this.#isNewest(); readings++) await this.#readOnce();
    return this.#known?.texts ?? new Map();
  }

  #isNewest(): boolean {
    return this.#known?.changedAt === this.#changedAt() && this.#known.types === this.#parts.types();
  }

  #changedAt(): Revision {
    return Math.max(...[exportType, schemaType].map(this.#parts.changedAt));
  }

  #readOnce(): Promise<void> {
    return (this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    }));
  }

  async #read(): Promise<void> {
    const changedAt = this.#changedAt();
    const types = this.#parts.types();
    const places = await this.#places(types);
    const texts = new Map<string, string>();
    for (const type of types)
      for (const place of places.get(formatGroupResource(type)) ?? []) {
        if (type.versions.every(({ name }) => texts.has(schemaName(type, name)))) break;
        await this.#add(texts, type, place);
      }
    this.#known = { types, changedAt, texts };
  }

  /** Keyed by the type whose schema an APIExport names. */
  async #places(types: readonly ServedType[]): Promise<ReadonlyMap<string, readonly SchemaPlace[]>> {
    const { objects, revisions } = this.#parts;
    const places = new Map<string, SchemaPlace[]>(types.map((type) => [formatGroupResource(type), []]));
    const scope = { ...exportType, shard: '*', cluster: rootCluster } as const;
    let [looked, bytes] = [0, 0];
    for await (const page of snapshotPages(objects.snapshot(scope, revisions.published))) {
      for (const { key, body } of page) {
        bytes += body.bytes.length;
        if (++looked > exportsMax || bytes > exportBytesMax) return places;
        await turn();
        for (const named of schemasNamedBy(body.bytes)) {
          const ofType = places.get(formatGroupResource(named));
          if (ofType !== undefined && ofType.length < triedMax) ofType.push({ shard: key.shard, name: named.name });
        }
      }
    }
    return places;
  }

  /** Adds the schemas of those versions that `texts` lacks. */
  async #add(texts: Map<string, string>, type: ServedType, { shard, name }: SchemaPlace): Promise<void> {
    await turn();
    const object = await this.#parts.objects.get({ resource: schemaType, shard, cluster: rootCluster, namespace: '', name });
    if (object === undefined) return;
    for (const [version, schema] of parseResourceSchema(object.body.bytes, type)) {
      const text = formatSchema(type, version, schema);
      const inDocument = schemaName(type, version);
      if (!texts.has(inDocument) && Buffer.byteLength(text) <= textBytesMax) texts.set(inDocument, text);
    }
  }
}
