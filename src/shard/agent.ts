/**
 * Pushes a shard's objects to a cache: one slice for each type that kcp replicates, and one for
 * each identity that the shard's ClusterCachedResources declare. If configured, it also pushes the
 * path entries of the shard's LogicalClusters and Workspaces. The agent stores nothing: a source
 * reads only on its sender's request.
 *
 *  shard ── KubeReader ──▶ SliceReader (select, stamp) ──▶ sender ──▶ cache
 *                              └─ ClusterCachedResources ─▶ DeclaredSlices ─▶ more slices
 *
 * The agent never reads a Strata cache as its source, even if the URL leads to one only later.
 */
import { BoundedLog } from '../diagnostics/bounded-log.js';
import type { Log } from '../diagnostics/log.js';
import { cacheServer, serverHeader } from '../domain/base/http-header.js';
import { textAt } from '../domain/base/members.js';
import type { TableType } from '../domain/catalogue/catalogue.js';
import { isDeclaring } from '../domain/catalogue/declaration.js';
import type { Clock } from '../domain/ports.js';
import type { ShardName } from '../domain/shard.js';
import type { Slice } from '../domain/slice.js';
import { deferred, pause } from '../domain/base/promises.js';
import { CacheError } from '../domain/errors.js';
import { jsonValue } from '../json/json-value.js';
import { AbsentTypes } from '../kube/absent-types.js';
import { readingOf, type CachedResource, type DeclaringShard } from './cached-resource.js';
import { DeclaredSlices, type SliceSink } from './declared-slices.js';
import { Identities } from '../kube/identities.js';
import { failureFields, KubeClient, KubeRefusal } from '../kube/kube-client.js';
import { KubeReader, type ReaderParts } from '../kube/kube-reader.js';
import { pathEntryForms } from './path-entry-forms.js';
import { replicatedTypes, select, type ReplicatedType, type SelectionRule } from './selection.js';
import type { Collection } from '../kube/collection.js';
import type { KubeAccess } from '../kube/kube-access.js';
import type { SourceObject } from '../kube/source-object.js';
import { SliceReader, type SliceReaderOptions, type PushedForm } from './slice-reader.js';
import { stamp, type StampedType } from './stamp.js';

export type ShardAgentParts = Readonly<{ access: KubeAccess; sink: SliceSink; clock: Clock; random: () => number; log: Log }>;

export type ShardAgentOptions = Readonly<{
  shard: ShardName;
  /** The types that need no declaration, including types that are not replicated. */
  types: readonly TableType[];
  /** Logical clusters that are replicated although their name begins with `system:`. */
  systemClusters: readonly string[];
  pushesPaths: boolean;
  /** The user agent that the shard's audit log and metrics show. */
  userAgent: string;
}>;

/** Maximum log lines in ten seconds: one for each type that every shard has. */
const linesAtOnceMax = 20;
/** Maximum log lines in ten seconds about objects of other shards. */
const passedOverLinesMax = 5;
const versionMsMax = 10_000;
const versionBytesMax = 64 * 1024;

export class ShardAgent {
  readonly #sink: SliceSink;
  readonly #options: ShardAgentOptions;
  readonly #systemClusters: ReadonlySet<string>;
  readonly #access: KubeAccess;
  readonly #client: KubeClient;
  readonly #reading: ReaderParts;
  readonly #passedOverLog: BoundedLog;
  readonly #isCache = deferred<SourceIsCache>();
  #types: readonly TableType[];
  #declared: DeclaredSlices | undefined;
  #objectsRead = 0;
  #isReached = false;

  constructor({ access, sink, clock, random, log }: ShardAgentParts, options: ShardAgentOptions) {
    this.#sink = sink;
    this.#options = options;
    this.#types = options.types;
    this.#systemClusters = new Set(options.systemClusters);
    this.#access = access;
    this.#client = new KubeClient({ access, clock, userAgent: options.userAgent, inspect: (headers) => this.#inspect(headers) });
    this.#passedOverLog = new BoundedLog({ clock, log }, { linesMax: passedOverLinesMax });
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

  /** Resolves once a Strata cache has answered a request. */
  get sourceIsCache(): Promise<SourceIsCache> {
    return this.#isCache.promise;
  }

  /** Objects and deletions read from the shard, including those that are not pushed. */
  get objectsRead(): number {
    return this.#objectsRead;
  }

  /** Whether the shard answered the last version request, and accepted the agent's credentials. */
  get isShardReached(): boolean {
    return this.#isReached;
  }

  /**
   * Throws SourceIsCache or SourceForbidsAll. If the source does not answer now, later responses
   * show whether it is a cache.
   */
  async checkSource(signal: AbortSignal): Promise<void> {
    const failure = await this.#askVersion(signal);
    if (isForbiddenByKcp(failure)) throw new SourceForbidsAll(this.#access, failure);
  }

  /**
   * Requests the shard's version at intervals until `signal` is aborted, because a standby reads
   * nothing else from the shard. Throws SourceIsCache.
   */
  async watchSource(intervalMs: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(this.#reading.clock, intervalMs, signal);
      if (!signal.aborted) await this.#askVersion(signal);
    }
  }

  /**
   * Adds all slices that need no declaration to the sink. Other slices follow when they are
   * declared.
   */
  start(): void {
    for (const type of replicatedTypes(this.#types)) this.#add(type);
    if (!this.#options.pushesPaths) return;
    for (const { resource, collection, form } of pathEntryForms)
      this.#sink.add({ shard: this.#options.shard, resource }, this.#sliceReader(collection, { form }));
  }

  /**
   * Replaces the table of types. Slices of removed types are withdrawn, and a slice that is now
   * read differently starts again. The type that declares types stays.
   */
  replaceTypes(types: readonly TableType[]): void {
    const readAs = (table: readonly TableType[]): ReadonlyMap<string, ReplicatedType> =>
      new Map(replicatedTypes(table).map((type) => [JSON.stringify(type), type]));
    const [before, after] = [readAs(this.#types), readAs(types)];
    this.#types = types;
    for (const [text, type] of before) if (!after.has(text)) this.#sink.withdraw(this.#sliceOf(type));
    for (const [text, type] of after) if (!before.has(text)) this.#add(type);
  }

  /** Call this once the sink has stopped its sources. */
  close(): void {
    this.#declared?.close();
    this.#client.close();
  }

  /**
   * Resolves with the error if no version was received, else with undefined. Throws SourceIsCache.
   */
  async #askVersion(signal: AbortSignal): Promise<unknown> {
    try {
      const asked = { path: versionPath, answerMsMax: versionMsMax, silenceMsMax: versionMsMax, signal };
      const answer = await this.#client.read(asked, versionBytesMax);
      if (answer !== undefined && isVersionOfCache(answer)) throw new SourceIsCache(this.#access);
      this.#isReached = true;
      return undefined;
    } catch (error) {
      if (error instanceof SourceIsCache) throw error;
      this.#isReached = error instanceof KubeRefusal && error.status < 500 && error.status !== 401;
      this.#reading.log.debug('source.version.unknown', failureFields(error));
      return error;
    }
  }

  #sliceOf({ group, resource }: ReplicatedType): Slice {
    return { shard: this.#options.shard, resource: { group, resource, identity: '' } };
  }

  #add(type: ReplicatedType): void {
    const slice = this.#sliceOf(type);
    const onlooker = isDeclaring(type) ? this.#declaredBy(slice, () => source.connected) : undefined;
    const form = this.#replicas(type, this.#rule(type.marked));
    const source: SliceReader = this.#sliceReader({ ...type, cluster: '*', labelSelector: '' }, { form, onlooker });
    this.#sink.add(slice, source);
  }

  #declaredBy(after: Slice, areFollowed: () => boolean): DeclaredSlices {
    const readerOf = (ofCluster: readonly [CachedResource, ...CachedResource[]]): SliceReader => {
      const { collection, type, selectors } = readingOf(ofCluster);
      return this.#sliceReader(collection, { form: this.#replicas(type, this.#rule(false, selectors)) });
    };
    const { clock, log } = this.#reading;
    const needsNoDeclaration: DeclaringShard['needsNoDeclaration'] = ({ group, resource }) =>
      this.#types.some((type) => type.group === group && type.resource === resource);
    const options = { shard: this.#options.shard, needsNoDeclaration, after, rule: this.#rule(false), areFollowed };
    this.#declared = new DeclaredSlices({ sink: this.#sink, clock, log, readerOf }, options);
    return this.#declared;
  }

  #sliceReader(collection: Collection, options: Omit<SliceReaderOptions, 'shard'>): SliceReader {
    const { group, resource } = collection;
    const onSkipped = ({ cluster, namespace, name, shard }: SourceObject): void =>
      this.#passedOverLog.warn('source.object.of-other-shard', { group, resource, cluster, namespace, name, shard });
    const read = (objects: number): void => void (this.#objectsRead += objects);
    const parts = { reader: new KubeReader(this.#reading, collection), read, onSkipped };
    return new SliceReader(parts, { ...options, shard: this.#options.shard });
  }

  #inspect(headers: Readonly<Record<string, unknown>>): void {
    if (headers[serverHeader] !== cacheServer) return;
    const error = new SourceIsCache(this.#access);
    this.#isCache.resolve(error);
    throw error;
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

/**
 * Whether an agent can read its source. Two kubeconfigs are easily mistaken for a shard's:
 *
 * - A Strata cache's. An agent that reads a cache pushes the objects of all shards as its own
 *   shard's. If it pushes into the same cache, it reads each pushed object as a new change, without
 *   end. A cache names itself in a header of every response, and in `/version`, because an
 *   intermediary may remove headers.
 * - A front proxy's, or one of a user outside `system:masters`. kcp then forbids every request
 *   for all logical clusters at once, including `/version`.
 */
const versionPath = '/clusters/*/version';

type Source = Pick<KubeAccess, 'source' | 'server'>;

class SourceIsCache extends CacheError {
  constructor(source: Source) {
    super(
      `${named(source)} is a Strata cache, and strata push reads a shard of kcp: give it the kubeconfig of the shard. ` +
        `To have another cache hold what this one holds, start that one as its child: strata serve --parent-urls=${new URL(source.server).origin}`,
    );
  }
}

class SourceForbidsAll extends CacheError {
  constructor(source: Source, { message }: KubeRefusal) {
    super(
      `${named(source)} does not let this user read all logical clusters at once (${message}). Give strata push the shard itself, not a front proxy, ` +
        'and a user in the group system:masters: in the admin.kubeconfig of kcp that is --context shard-base',
    );
  }
}

function named({ source, server }: Source): string {
  return source === undefined ? server : `${source}: ${server}`;
}

/**
 * `error`: from a request of `versionPath`. A 403 without a Status may be from an intermediary, and
 * be temporary.
 */
function isForbiddenByKcp(error: unknown): error is KubeRefusal {
  return error instanceof KubeRefusal && error.status === 403 && error.reason === 'Forbidden';
}

/** `answer`: the response to a request of `versionPath`. */
function isVersionOfCache(answer: string): boolean {
  return textAt(jsonValue(answer), 'gitVersion')?.includes('+strata-') === true;
}
