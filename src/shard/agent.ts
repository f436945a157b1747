/**
 * Pushes what a shard has to a cache: one slice for each type that kcp replicates, one for each identity that the shard's
 * ClusterCachedResources declare, and, if it is asked to, the path entries of its LogicalClusters and Workspaces. It keeps nothing itself: a source
 * reads when its sender asks, and sends what it reads.
 *
 *   shard ── KubeReader ──▶ SliceReader (select, stamp) ──▶ sender ──▶ cache
 *                               └─ ClusterCachedResources ─▶ DeclaredSlices ─▶ more slices
 */
import { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Log } from '../diagnostics/log.js';
import type { Clock } from '../domain/ports.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import { AbsentTypes } from '../kube/absent-types.js';
import { readingOf, type CachedResource } from './cached-resource.js';
import { DeclaredSlices } from './declared-slices.js';
import { Identities } from '../kube/identities.js';
import { KubeClient } from '../kube/kube-client.js';
import { KubeReader, type ReaderParts } from '../kube/kube-reader.js';
import { pathEntryForms } from './path-entry-forms.js';
import { replicatedTypes, select, type ReplicatedType, type SelectionRule } from './selection.js';
import type { KubeAccess } from '../kube/kube-access.js';
import { SliceReader, type Onlooker, type PushedForm } from './slice-reader.js';
import type { SliceSink } from './slice-sink.js';
import { stamp, type StampedType } from './stamp.js';

export type ShardAgentParts = Readonly<{ access: KubeAccess; sink: SliceSink; clock: Clock; random: () => number; log: Log }>;

export type ShardAgentOptions = Readonly<{
  shard: ShardName;
  /** Logical clusters that are replicated although their name begins with `system:`. */
  systemClusters: readonly string[];
  /** Whether path entries are pushed. */
  pushesPaths: boolean;
  /** What the shard's audit log and metrics know the agent by. */
  userAgent: string;
}>;

/** In ten seconds: one for each type that every shard has. */
const linesAtOnceMax = 20;

export class ShardAgent {
  readonly #sink: SliceSink;
  readonly #shard: ShardName;
  readonly #systemClusters: ReadonlySet<string>;
  readonly #pushesPaths: boolean;
  readonly #client: KubeClient;
  readonly #reading: ReaderParts;
  #declared: DeclaredSlices | undefined;

  constructor({ access, sink, clock, random, log }: ShardAgentParts, { shard, systemClusters, pushesPaths, userAgent }: ShardAgentOptions) {
    this.#sink = sink;
    this.#shard = shard;
    this.#systemClusters = new Set(systemClusters);
    this.#pushesPaths = pushesPaths;
    this.#client = new KubeClient({ access, clock, userAgent });
    this.#reading = {
      client: this.#client,
      identities: new Identities({ client: this.#client }),
      absent: new AbsentTypes(),
      clock,
      random,
      log,
      boundedLog: new BoundedLog({ clock, log }, { linesMax: linesAtOnceMax }),
    };
  }

  /** Gives the sink every slice of the shard that needs no declaration. The others follow as they are declared. */
  start(): void {
    for (const type of replicatedTypes) {
      const slice: Slice = { shard: this.#shard, resource: { group: type.group, resource: type.resource, identity: '' } };
      const isDeclaring = type.resource === 'clustercachedresources';
      const source: SliceReader = this.#readerOf(type, isDeclaring ? this.#declaredBy(slice, () => source.connected) : undefined);
      this.#sink.add(slice, source);
    }
    if (!this.#pushesPaths) return;
    for (const { resource, collection, form } of pathEntryForms)
      this.#sink.add({ shard: this.#shard, resource }, new SliceReader({ reader: new KubeReader(this.#reading, collection) }, { form }));
  }

  /** To be called when the sink has stopped its sources. */
  close(): void {
    this.#declared?.close();
    this.#client.close();
  }

  #readerOf(type: ReplicatedType, onlooker: Onlooker | undefined): SliceReader {
    const reader = new KubeReader(this.#reading, { ...type, cluster: '*', labelSelector: '' });
    return new SliceReader(
      { reader },
      { form: this.#replicas(type, this.#rule(type.marked)), ...(onlooker !== undefined && { onlooker }) },
    );
  }

  #declaredBy(after: Slice, areFollowed: () => boolean): DeclaredSlices {
    const readerOf = (ofCluster: readonly [CachedResource, ...CachedResource[]]): SliceReader => {
      const { collection, type, selectors } = readingOf(ofCluster);
      const reader = new KubeReader(this.#reading, collection);
      return new SliceReader({ reader }, { form: this.#replicas(type, this.#rule(false, selectors)) });
    };
    const { clock, log } = this.#reading;
    const options = { shard: this.#shard, after, rule: this.#rule(false), areFollowed };
    this.#declared = new DeclaredSlices({ sink: this.#sink, clock, log, readerOf }, options);
    return this.#declared;
  }

  #replicas(type: StampedType, rule: SelectionRule): PushedForm {
    return {
      version: type.version,
      select: (object) => {
        const selected = select(object, rule);
        return selected === 'put' ? () => stamp(object, type) : selected;
      },
    };
  }

  #rule(marked: boolean, selectors?: SelectionRule['selectors']): SelectionRule {
    return { marked, systemClusters: this.#systemClusters, selectors };
  }
}
