/**
 * Computes on request how fresh each shard's part of this cache is. It reads the store's state, the
 * connected pushers, and the last reports of pushers and other caches. A value that nobody reports
 * is null, never guessed.
 *
 *   the shard's via    source of connection and lag
 *   local              the reports of its pusher; none if the shard is written over plain HTTP
 *   a link             the reports of the cache at its other end; away while the link is down
 *   none               away
 *
 * Cost: a status report reads every shard and slice, `checksPerTurn` in a turn of the event loop. A
 * report on a type reads its slices and all shards, or the one in question, `shardsPerTurnOfType`
 * in a turn. Each shard is read within one turn, so all its values are of one moment. The last
 * report of a type on all shards is kept for callers that accept its age.
 *
 * Bound: `typesKeptMax` types; the cache drops the oldest report.
 */
import { entryOf } from '../../domain/base/entry-of.js';
import { isWrittenPlainly, type ShardState } from '../../domain/claim.js';
import type { Clock, Freshness as FreshnessPort, RecentReport } from '../../domain/ports.js';
import type { Revisions, StoreIdentity } from '../../domain/store-port.js';
import type { SliceState } from '../../domain/push.js';
import type { ShardName } from '../../domain/shard.js';
import { formatGroupResource, formatResource, type Resource } from '../../domain/resource.js';
import { childOf, type Neighbour, type Via } from '../../domain/via.js';
import type { Slice } from '../../domain/slice.js';
import type {
  CertificateStatus,
  HeldRemovalStatus,
  ShardConnection,
  ShardStatus,
  SliceStatus,
  StatusReport,
  TreeStatus,
} from '../../domain/status.js';
import { shardFreshness, TypeFreshness, type FreshnessQuestion, type TypeFreshnessReport } from '../../domain/type-freshness.js';
import type { SliceReport } from '../../frames/frame.js';
import type { HeldRemovals } from './held-removals.js';
import type { KeptObjects } from './kept-objects.js';
import type { PublishedState } from '../../domain/published-state.js';
import type { NewestChanges } from './newest-changes.js';
import type { PushSessions } from '../push/push-sessions.js';
import type { Standbys } from '../push/standbys.js';

/** The reports of links on the shards behind them. `sinceMs`: in milliseconds since 1970. */
export type LinkFreshness = Readonly<{
  presence: (neighbour: Neighbour) => Readonly<{ isUp: boolean; sinceMs: number }>;
  shard: (neighbour: Neighbour, shard: ShardName) => Readonly<{ connected: boolean; sinceMs: number }>;
  slice: (neighbour: Neighbour, slice: Slice) => SliceReport | undefined;
  reportedOf: (neighbour: Neighbour, shard: ShardName) => Iterable<Slice>;
}>;

export type FreshnessParts = Readonly<{
  store: StoreIdentity & Readonly<{ revisions: Pick<Revisions, 'published' | 'format'> }>;
  known: Pick<PublishedState, 'names' | 'hasName' | 'shard' | 'slicesOf' | 'slicesOfType'>;
  sessions: Pick<PushSessions, 'presence' | 'reportedOf'>;
  /** Whether the slice's type is served here, or stored without being served. */
  isKnown: (slice: Slice) => boolean;
  standbys: Pick<Standbys, 'count'>;
  links: LinkFreshness;
  newest: Pick<NewestChanges, 'of'>;
  removals: Pick<HeldRemovals, 'waiting' | 'graceMs'>;
  kept: Pick<KeptObjects, 'report'> | undefined;
  reportTree: () => TreeStatus;
  /**
   * The same values as in `reportTree`, at less cost. `parentId`: undefined while the parent is
   * not connected.
   */
  tree: Readonly<{ isComplete: boolean; parentId: string | undefined }>;
  clock: Clock;
  turn: () => Promise<void>;
  version: string;
  isReady: () => boolean;
  certificates: () => readonly CertificateStatus[];
}>;

/** Counts shards and slices. */
const checksPerTurn = 2_500;
const shardsPerTurnOfType = 1_000;
const typesKeptMax = 100;
const unknownTypesMax = 100;

/**
 * The pusher or the link that reports on a shard. `sinceMs`: since when it is connected, or away.
 */
type Reporter = Readonly<{
  connection: ShardConnection;
  isThere: boolean;
  sinceMs: number;
  reported: (slice: Slice) => SliceReport | undefined;
}>;

export class Freshness implements FreshnessPort {
  readonly #parts: FreshnessParts;
  /** Keyed by type and identity; the oldest report comes first. */
  readonly #recent = new Map<string, Readonly<{ atMs: number; report: Promise<TypeFreshnessReport> }>>();

  constructor(parts: FreshnessParts) {
    this.#parts = parts;
  }

  async report(): Promise<StatusReport> {
    const { known, clock, turn } = this.#parts;
    const tree = this.#parts.reportTree();
    const nowMs = clock.now();
    const statuses: ShardStatus[] = [];
    let looks = 0;
    for (const shard of [...known.names].toSorted()) {
      const status = this.#shard(shard, nowMs);
      statuses.push(status);
      looks += 1 + status.slices.length;
      if (looks < checksPerTurn) continue;
      await turn();
      looks = 0;
    }
    return {
      cache: this.#cache(),
      tree,
      certificates: this.#parts.certificates(),
      shards: statuses,
      kept: this.#parts.kept?.report() ?? [],
    };
  }

  async ofType(question: FreshnessQuestion): Promise<TypeFreshnessReport> {
    const { known, clock, tree, turn } = this.#parts;
    // Read before the shards: a shard that this cache learns of later is not part of the answer.
    const [cache, complete, nowMs] = [this.#cache(), tree.isComplete, clock.now()];
    const shards = question.shard === undefined ? known.names : known.hasName(question.shard) ? [question.shard] : [];
    const slices = known.slicesOfType(question);
    const slicesOn = question.shard === undefined ? byShard(slices) : (shard: ShardName) => slicesAt(shard, slices);
    const ofType = new TypeFreshness();
    let looked = 0;
    for (const shard of shards) {
      looked += 1;
      if (looked % shardsPerTurnOfType === 0) await turn();
      const state = known.shard(shard);
      if (state?.removed === true) continue;
      const reporter = this.#reporter(shard, state, nowMs);
      const statuses = slicesOn(shard).map((slice) => sliceStatus(slice, state, reporter, nowMs));
      ofType.add(shardFreshness({ shard, connection: reporter.connection }, statuses));
    }
    // Read after the shards, so that the newest change is no older than their values.
    const newestChange = this.#parts.store.revisions.format(this.#parts.newest.of(question));
    return { cache, tree: { complete }, newestChange, ...ofType.report(cache.ready && complete) };
  }

  async ofTypeLately(type: Omit<FreshnessQuestion, 'shard'>, ageMaxMs: number): Promise<RecentReport> {
    const { clock } = this.#parts;
    const name = `${formatGroupResource(type)}:${type.identity ?? '*'}`;
    const nowMs = clock.now();
    let recent = this.#recent.get(name);
    if (recent === undefined || nowMs - recent.atMs >= ageMaxMs) {
      recent = { atMs: nowMs, report: this.ofType({ ...type, shard: undefined }) };
      this.#recent.delete(name);
      this.#recent.set(name, recent);
      const [oldest] = this.#recent.keys();
      if (this.#recent.size > typesKeptMax && oldest !== undefined) this.#recent.delete(oldest);
    }
    const report = await recent.report;
    return { report, agoMs: age(recent.atMs, clock.now()) };
  }

  #cache(): StatusReport['cache'] {
    const { store, version, isReady } = this.#parts;
    const { cacheId: id, epoch, revisions } = store;
    return { id, version, epoch, resourceVersion: revisions.format(revisions.published), ready: isReady() };
  }

  #shard(shard: ShardName, nowMs: number): ShardStatus {
    const { known, standbys } = this.#parts;
    const state = known.shard(shard);
    const reporter = this.#reporter(shard, state, nowMs);
    const term = state === undefined || isWrittenPlainly(state) ? {} : { term: state.term };
    return {
      shard,
      via: state?.via ?? null,
      ...term,
      removed: state?.removed ?? false,
      connection: reporter.connection,
      standbys: standbys.count(shard),
      unknownTypes: this.#unknownTypes(shard, state?.via),
      slices: inOrder([...known.slicesOf(shard)]).map((slice) => ({
        ...sliceStatus(slice, state, reporter, nowMs),
        held: this.#held(slice, nowMs),
      })),
    };
  }

  #unknownTypes(shard: ShardName, via: Via | undefined): readonly string[] {
    const { sessions, links, isKnown } = this.#parts;
    const reported = via === undefined || via === 'local' ? sessions.reportedOf(shard) : links.reportedOf(via, shard);
    const unknown: string[] = [];
    for (const slice of reported) if (unknown.length < unknownTypesMax && !isKnown(slice)) unknown.push(nameOf(slice.resource));
    return unknown.toSorted();
  }

  #reporter(shard: ShardName, state: ShardState | undefined, nowMs: number): Reporter {
    const via = state?.via;
    return state === undefined || via === undefined || via === 'local' ? this.#pusher(shard, state, nowMs) : this.#link(state, via, nowMs);
  }

  #held({ slice }: SliceState, nowMs: number): HeldRemovalStatus | null {
    const { removals } = this.#parts;
    const held = removals.waiting(slice);
    if (held === undefined) return null;
    const forMs = age(held.sinceMs, nowMs);
    return { removes: held.removes, forMs, releaseInMs: Math.max(0, removals.graceMs - forMs) };
  }

  #pusher(shard: ShardName, state: ShardState | undefined, nowMs: number): Reporter {
    const { peer, sinceMs, reported } = this.#parts.sessions.presence(shard);
    const forMs = age(sinceMs, nowMs);
    const connection: ShardConnection = peer === undefined ? { kind: 'away', forMs } : { kind: 'connected', forMs, peer };
    const isPlain = state === undefined || state.plain;
    return {
      connection: isPlain ? { kind: 'plain' } : connection,
      isThere: peer !== undefined,
      sinceMs,
      reported,
    };
  }

  #link(state: ShardState, neighbour: Neighbour, nowMs: number): Reporter {
    const { links, tree } = this.#parts;
    const { isUp, sinceMs } = links.presence(neighbour);
    const reported = links.shard(neighbour, state.shard);
    const forMs = age(reported.sinceMs, nowMs);
    const peer = childOf(neighbour) ?? tree.parentId ?? neighbour;
    const connection: ShardConnection = reported.connected ? { kind: 'connected', forMs, peer } : { kind: 'away', forMs };
    return {
      connection: isUp && isWrittenPlainly(state) ? { kind: 'plain' } : connection,
      isThere: isUp,
      sinceMs,
      reported: (slice) => links.slice(neighbour, slice),
    };
  }
}

type SlicesOfType = ReturnType<PublishedState['slicesOfType']>;

function slicesAt(shard: ShardName, identities: SlicesOfType): readonly SliceState[] {
  const found: SliceState[] = [];
  for (const slices of identities) {
    const slice = slices.get(shard);
    if (slice !== undefined) found.push(slice);
  }
  return found;
}

/**
 * The result reads the slices when it is called. The identities are gathered by shard once, because
 * looking up every shard under every identity would cost far more.
 */
function byShard(identities: SlicesOfType): (shard: ShardName) => readonly SliceState[] {
  if (identities.length < 2) return (shard) => slicesAt(shard, identities);
  const gathered = new Map<ShardName, SlicesOfType[number][]>();
  for (const slices of identities) {
    for (const shard of slices.keys()) entryOf(gathered, shard, (): SlicesOfType[number][] => []).push(slices);
  }
  return (shard) => slicesAt(shard, gathered.get(shard) ?? []);
}

function sliceStatus(state: SliceState, shard: ShardState | undefined, reporter: Reporter, nowMs: number): Omit<SliceStatus, 'held'> {
  const { slice, everSynced, objects, bytes, digest, changedMs, filterHash } = state;
  const { group, resource, identity } = slice.resource;
  const reported = reporter.reported(slice);
  // Nobody knows whether a plain writer still writes.
  const said = reporter.connection.kind === 'plain' ? undefined : reported;
  return {
    group,
    resource,
    identity,
    everSynced,
    syncedIn: syncedIn(state, shard),
    whole: shard !== undefined && isWhole(state, shard, reported?.whole ?? false),
    current: shard?.via === undefined || shard.via === 'local' ? null : filterHash !== '',
    objects,
    bytes,
    digest,
    changedAgoMs: changedMs === 0 ? null : age(changedMs, nowMs),
    lagMs: said === undefined ? null : reporter.isThere ? said.lagMs : said.lagMs + age(reporter.sinceMs, nowMs),
    sourceConnected: reporter.isThere ? (said?.connected ?? null) : null,
  };
}

/**
 * Whether this cache has every object of the slice that the shard has, except for its lag. The
 * shard's present term must have synced the slice, and its pusher or link must report it as whole
 * (`reported`). Over a link, the slice must also be current. For a plain writer, wholeness is
 * assumed once the slice counts as synced.
 */
export function isWhole(state: SliceState | undefined, { via, plain, term }: ShardState, reported: boolean): boolean {
  if (state === undefined || via === undefined || state.syncedTerm === 0 || state.syncedTerm !== term) return false;
  return via === 'local' ? plain || reported : state.filterHash !== '' && reported;
}

/**
 * A plain writer syncs nothing. Once the writer is quiet, its objects count as all of the slice.
 */
function syncedIn({ syncedTerm, everSynced }: SliceState, shard: ShardState | undefined): SliceStatus['syncedIn'] {
  if (shard !== undefined && syncedTerm !== 0 && syncedTerm === shard.term) return isWrittenPlainly(shard) ? 'assumed' : 'this-term';
  return everSynced ? 'earlier' : 'never';
}

function inOrder(slices: readonly SliceState[]): readonly SliceState[] {
  return slices
    .map((state) => {
      const { group, resource, identity } = state.slice.resource;
      return { state, type: `${group}/${resource}:${identity}` };
    })
    .toSorted((a, b) => (a.type === b.type ? 0 : a.type < b.type ? -1 : 1))
    .map(({ state }) => state);
}

function nameOf(resource: Resource): string {
  return resource.identity === '' ? formatGroupResource(resource) : formatResource(resource);
}

function age(sinceMs: number, nowMs: number): number {
  return Math.max(0, nowMs - sinceMs);
}
