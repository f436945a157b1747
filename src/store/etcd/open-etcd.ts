/**
 * Opens the etcd engine. It lists all objects as of some minutes ago, follows the changes since
 * then, and begins a life of the cache or joins one.
 *
 *   compacted ───────── R ──────────────────── now      Changes after R arrive one by one, so a
 *                       └─ all objects, in pages        watch of another server can resume here.
 */
import { deferred } from '../../domain/base/promises.js';
import { CacheError } from '../../domain/errors.js';
import type { Revision } from '../../domain/revision.js';
import type { Clock } from '../../domain/ports.js';
import { newCacheId, nextEpoch } from '../epochs.js';
import { EtcdClient } from './client.js';
import { compactionKey } from './compaction.js';
import { EtcdError } from './etcd-error.js';
import { Follower, type FollowedBatch } from './follower.js';
import { HistoryWindow } from './history-window.js';
import { someServerLives } from './living-servers.js';
import { assertVersions } from './member-versions.js';
import { EtcdPeers } from './peers.js';
import { PublishedState } from './published-state.js';
import { RecentBodies } from './recent-bodies.js';
import { everyKey, formatRecord, formatRecordKey, type CacheRecord } from './records.js';
import { EtcdStore } from './store.js';
import type { StoreParts } from '../store-options.js';
import type { EtcdLimits, EtcdOptions } from './store-options.js';

const contradiction = 'etcd has lost changes that it sent before: it was restored';
const answerMsMax = 5_000;
/** Attempts to list, if etcd is compacted during the listing. */
const triesMax = 3;

/** Throws CacheError. */
export async function openEtcd(options: EtcdOptions, limits: EtcdLimits, parts: StoreParts): Promise<EtcdStore> {
  const { prefix } = options;
  const client = new EtcdClient(parts, options);
  let loaded: Loaded | undefined;
  try {
    await assertVersions(client, parts.log);
    loaded = await load(client, { prefix, limits, parts });
    const { follower, published, bodies } = loaded;
    const window = new HistoryWindow(follower.position, limits.history);
    loaded.apply = (batch) => {
      const { commit, replacedBytes } = published.apply(batch, parts.clock.now());
      window.add(commit.changes, parts.clock.now(), replacedBytes);
      // No reader needs the dropped changes yet.
      while (window.isFull) window.trim(parts.clock.now(), Infinity);
    };
    follower.begin();
    await follower.catchUp();
    const contradicted = deferred<Error>();
    const peers = new EtcdPeers({
      ...parts,
      client,
      published: published.peers,
      prefix,
      reach: (revision) => follower.catchUp(revision),
      contradicted: () => contradicted.resolve(new CacheError(contradiction)),
    });
    loaded.isKept = () => peers.isKept();
    const { cacheId, epoch } = await beginLife({ client, follower, published, peers, prefix, parts });
    const life = { peers, contradicted, cacheId, epoch };
    const opened = new EtcdStore({ client, follower, published, window, bodies, prefix, ...life }, limits, parts);
    loaded.apply = (batch) => opened.apply(batch);
    await peers.join();
    return opened;
  } catch (error) {
    loaded?.follower.close();
    client.close();
    if (error instanceof EtcdError) throw new CacheError(`the store in etcd cannot be opened: ${error.message}`, { cause: error });
    throw error;
  }
}

/** The state as of some minutes ago. `apply` receives the later batches. */
type Loaded = Readonly<{ follower: Follower; published: PublishedState; bodies: RecentBodies }> & Receiver;

type Receiver = { apply: (batch: FollowedBatch) => void; isKept: () => Promise<boolean> };

type Loading = Readonly<{ prefix: string; limits: EtcdLimits; parts: StoreParts }>;

async function load(client: EtcdClient, loading: Loading): Promise<Loaded> {
  let from = await beginning(client, loading.limits.resumedRevisionsMax);
  for (let tries = 1; ; tries += 1) {
    try {
      return await loadFrom(client, from, loading);
    } catch (error) {
      if (!(error instanceof EtcdError) || error.kind !== 'compacted' || tries === triesMax) throw error;
    }
    // After a restore, or if another program compacts, `compact_rev_key` names an older revision.
    from = await compactedUpTo(client, loading.parts.clock);
  }
}

/**
 * etcd's compacted revision, which etcd reports to a watch that begins below it. Throws EtcdError.
 */
async function compactedUpTo(client: EtcdClient, clock: Clock): Promise<Revision> {
  const compacted = deferred<Revision>();
  const range = { key: compactionKey, rangeEnd: Buffer.concat([compactionKey, Buffer.of(0)]), startRevision: 1 };
  const watch = client.watch(range, {
    received: (response) => void (response.compacted > 0 && compacted.resolve(response.compacted)),
    ended: (error) => compacted.reject(error),
  });
  const cancel = clock.after(answerMsMax, () => compacted.reject(new EtcdError('unknown', 'etcd did not report its compacted revision')));
  try {
    return await compacted.promise;
  } finally {
    cancel();
    watch.close();
  }
}

async function loadFrom(client: EtcdClient, from: Revision, { prefix, limits, parts }: Loading): Promise<Loaded> {
  const bodies = new RecentBodies(limits.recentBytesMax);
  const published = new PublishedState({ prefix, bodies, log: parts.log, keptNames: limits.keptNames });
  const receiver: Receiver = { apply: (batch) => published.load(batch), isKept: async () => true };
  const { clock, log } = parts;
  const follower = await Follower.open(
    everyKey(prefix),
    { client, clock, log, apply: (batch) => receiver.apply(batch), isKept: () => receiver.isKept() },
    from,
  );
  return Object.assign(receiver, { follower, published, bodies });
}

/** The revision at which history begins; 0: etcd's newest. */
async function beginning(client: EtcdClient, revisionsMax: number): Promise<Revision> {
  const { revision, kvs } = await client.range({ key: compactionKey });
  const compacted = Number(kvs[0] === undefined ? 0 : Buffer.from(kvs[0].value).toString());
  const from = Math.max(revision - revisionsMax, Number.isSafeInteger(compacted) ? compacted : 0);
  return from >= revision ? 0 : Math.max(1, from);
}

type Beginning = Pick<Loaded, 'follower' | 'published'> &
  Readonly<{ client: EtcdClient; peers: EtcdPeers; prefix: string; parts: StoreParts }>;

/**
 * Decides which cache this is, and which life of it. A server that finds no other server running
 * begins a new life, because etcd may have changed while no server ran. One transaction writes the
 * life and the server's record, so a server that finds the life also finds a server of it.
 */
async function beginLife({ client, follower, published, peers, prefix, parts }: Beginning): Promise<CacheRecord> {
  const key = Buffer.from(formatRecordKey(prefix, { kind: 'cache' }));
  // Read before the wait. If another server begins a life during the wait, that server is running,
  // and this one joins its life.
  const known = published.cache;
  const reachNewest = async (): Promise<void> => {
    const failure = await Promise.race([follower.reachNewest(), follower.failed]);
    if (failure !== undefined) throw failure;
  };
  const looking = { ...parts, client, published: published.peers, reachNewest };
  if (known?.record !== undefined && (await someServerLives(looking))) return published.cache?.record ?? known.record;
  const cacheId = known?.record?.cacheId ?? newCacheId(parts.random);
  const record = { cacheId, epoch: nextEpoch(known?.record?.epoch ?? 0, { nowMs: parts.clock.wallMs(), random: parts.random }) };
  const compare = [{ key, revision: known?.revision ?? 0 }];
  if (await peers.enter({ compare, success: [{ kind: 'put', key, value: formatRecord(record) }] })) return record;
  const begun = published.cache?.record;
  if (begun === undefined) throw new CacheError(`another program has changed the etcd key ${formatRecordKey(prefix, { kind: 'cache' })}`);
  return begun;
}
