/**
 * Every metric. The typed `Metrics` and the Prometheus text are both built from this table
 * (metrics.ts).
 *
 * Label values are closed sets, such as a verb, a status code or a reason of `domain/errors.ts`. A
 * label is never a text that a client chose: a name, cluster or path would let clients grow the
 * memory (G13). The exceptions are shards, types and links, because freshness is reported for each.
 * The store bounds their number.
 */
export type MetricDeclaration = Readonly<{
  kind: 'counter' | 'gauge' | 'histogram';
  name: string;
  help: string;
  labels: readonly string[];
  buckets?: readonly number[];
}>;
export type MetricTable = Readonly<Record<string, MetricDeclaration>>;

const requestSecondsBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const commitSecondsBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

/** The metrics of a server. */
export const metricTable = {
  requests: {
    kind: 'counter',
    name: 'strata_requests_total',
    help: 'Requests answered; a watch counts when it ends.',
    labels: ['verb', 'code'],
  },
  requestSeconds: {
    kind: 'histogram',
    name: 'strata_request_duration_seconds',
    help: 'Time from a request to the end of its answer; watches are not observed.',
    labels: ['verb'],
    buckets: requestSecondsBuckets,
  },
  refusals: { kind: 'counter', name: 'strata_refusals_total', help: 'Requests and mutations refused.', labels: ['reason'] },
  commits: { kind: 'counter', name: 'strata_commits_total', help: 'Transactions made durable.', labels: [] },
  commitSeconds: {
    kind: 'histogram',
    name: 'strata_commit_duration_seconds',
    help: 'Time one commit took, its sync to disk included.',
    labels: [],
    buckets: commitSecondsBuckets,
  },
  compactionSeconds: {
    kind: 'histogram',
    name: 'strata_compaction_step_duration_seconds',
    help: 'Time for which one step of compaction made commits wait.',
    labels: [],
    buckets: commitSecondsBuckets,
  },
  mutations: { kind: 'counter', name: 'strata_mutations_total', help: 'Mutations decided.', labels: ['outcome'] },
  queueLength: { kind: 'gauge', name: 'strata_queue_mutations', help: 'Mutations waiting to commit.', labels: [] },
  queueBytes: { kind: 'gauge', name: 'strata_queue_bytes', help: 'Bytes of the mutations waiting to commit.', labels: [] },
  pushSessions: { kind: 'gauge', name: 'strata_push_sessions', help: 'Websocket sessions of pushers open now.', labels: [] },
  framesReceived: { kind: 'counter', name: 'strata_push_frames_total', help: 'Frames that pushers sent.', labels: ['kind'] },
  pushes: { kind: 'counter', name: 'strata_pushes_total', help: 'Pushes decided.', labels: ['outcome'] },
  linkConnected: {
    kind: 'gauge',
    name: 'strata_link_connected',
    help: '1 while the link to the parent or a child is open.',
    labels: ['neighbour'],
  },
  linkBehind: {
    kind: 'gauge',
    name: 'strata_link_behind',
    help: 'Changes of this cache that the sending half of a link has not read yet.',
    labels: ['neighbour'],
  },
  linkSlices: {
    kind: 'gauge',
    name: 'strata_link_slices',
    help: 'Slices that cross a link from here, by whether the other end is current.',
    labels: ['neighbour', 'state'],
  },
  digestsDiffered: {
    kind: 'counter',
    name: 'strata_link_digest_differences_total',
    help: 'Slices that were resynced because the digests of both ends of a link differed: a bug, if it is not 0.',
    labels: [],
  },
  claimsIgnored: {
    kind: 'counter',
    name: 'strata_link_claims_ignored_total',
    help: 'Claims of shards over links that were ignored: a policy does not allow them, or a child has claimed as many as it may.',
    labels: [],
  },
  shardConnected: {
    kind: 'gauge',
    name: 'strata_shard_connected',
    help: '1 while a pusher of the shard is connected, 0 while it is away; shards written over plain HTTP have none.',
    labels: ['shard'],
  },
  sliceEverSynced: {
    kind: 'gauge',
    name: 'strata_slice_ever_synced',
    help: '1 once the type was synced in full for the shard.',
    labels: ['shard', 'type'],
  },
  sliceWhole: {
    kind: 'gauge',
    name: 'strata_slice_whole',
    help: '1 while every object that the shard has of the type is here, apart from the lag.',
    labels: ['shard', 'type'],
  },
  sliceHeldObjects: {
    kind: 'gauge',
    name: 'strata_slice_held_objects',
    help: 'Objects of the type that a policy, or a pusher that no longer names the type, would remove: held until somebody confirms it.',
    labels: ['shard', 'type'],
  },
  treeComplete: {
    kind: 'gauge',
    name: 'strata_tree_complete',
    help: '1 while this cache knows every shard that any cache of the tree knows.',
    labels: [],
  },
  sliceObjects: { kind: 'gauge', name: 'strata_slice_objects', help: 'Objects of the type on the shard.', labels: ['shard', 'type'] },
  sliceBytes: {
    kind: 'gauge',
    name: 'strata_slice_bytes',
    help: 'Bytes of the objects of the type on the shard.',
    labels: ['shard', 'type'],
  },
  sliceChangedSeconds: {
    kind: 'gauge',
    name: 'strata_slice_changed_seconds',
    help: 'Time since an object of the type on the shard last changed.',
    labels: ['shard', 'type'],
  },
  sliceLagSeconds: {
    kind: 'gauge',
    name: 'strata_slice_lag_seconds',
    help: 'Age of the oldest change that the pusher knows and that is not durable here, as the pusher last reported.',
    labels: ['shard', 'type'],
  },
  certificateExpiresSeconds: {
    kind: 'gauge',
    name: 'strata_certificate_expires_seconds',
    help: 'When the first certificate in use for this expires, in seconds since 1970.',
    labels: ['use'],
  },
  openWatches: { kind: 'gauge', name: 'strata_watches_open', help: 'Watches open now.', labels: [] },
  eventsSent: { kind: 'counter', name: 'strata_watch_events_total', help: 'Events written to watches, bookmarks not counted.', labels: [] },
  connectionsOpen: {
    kind: 'gauge',
    name: 'strata_connections_open',
    help: 'Connections after their handshake, by kind of caller and by protocol.',
    labels: ['caller', 'protocol'],
  },
  requestsInFlight: {
    kind: 'gauge',
    name: 'strata_requests_in_flight',
    help: 'Requests whose answer the client has not read yet; watches are not counted.',
    labels: [],
  },
  bufferedBytes: {
    kind: 'gauge',
    name: 'strata_buffered_bytes',
    help: 'Bytes in memory of unfinished request bodies and of answers that clients have not read yet.',
    labels: [],
  },
  limitsReached: {
    kind: 'counter',
    name: 'strata_limits_reached_total',
    help: 'Requests refused because a limit was reached, by the limit and the kind of caller.',
    labels: ['limit', 'caller'],
  },
  pathConflicts: {
    kind: 'counter',
    name: 'strata_path_conflicts_total',
    help: 'Times a path led to a logical cluster that several shards claim, or that is not where its Workspace says.',
    labels: [],
  },
  watchFallbacks: {
    kind: 'counter',
    name: 'strata_watch_fallbacks_total',
    help: 'Times a watcher fell behind and read on from the change log.',
    labels: [],
  },
  listChunksShared: {
    kind: 'counter',
    name: 'strata_list_chunks_shared_total',
    help: 'Chunks of a list that a further client got without another read of the store.',
    labels: [],
  },
  publishedRevision: {
    kind: 'gauge',
    name: 'strata_published_revision',
    help: 'The revision up to which everything is durable and visible.',
    labels: [],
  },
  compactedRevision: { kind: 'gauge', name: 'strata_compacted_revision', help: 'The revision up to which history is gone.', labels: [] },
  historyChanges: {
    kind: 'gauge',
    name: 'strata_history_changes',
    help: 'Changes in the log on the disk, those included that nobody may read any more.',
    labels: [],
  },
  buildInfo: { kind: 'gauge', name: 'strata_build_info', help: '1; the label has the version that runs.', labels: ['version'] },
  storeFileBytes: {
    kind: 'gauge',
    name: 'strata_store_file_bytes',
    help: 'Bytes of the files on the disk: the database, and its write-ahead log.',
    labels: ['file'],
  },
  ready: { kind: 'gauge', name: 'strata_ready', help: '1 while /readyz answers ok.', labels: [] },
  storeFailing: {
    kind: 'gauge',
    name: 'strata_store_failing',
    help: '1 while the store cannot commit, because its last attempt failed.',
    labels: [],
  },
  diskAvailableBytes: {
    kind: 'gauge',
    name: 'strata_disk_available_bytes',
    help: 'Bytes that the server may still write on the disk of this folder; absent on etcd, and while the disk does not answer.',
    labels: ['folder'],
  },
  diskSizeBytes: { kind: 'gauge', name: 'strata_disk_size_bytes', help: 'Size of the disk of this folder, in bytes.', labels: ['folder'] },
  leads: { kind: 'gauge', name: 'strata_leads', help: '1 on the server that leads, of all servers of its store; else 0.', labels: [] },
  otherServers: { kind: 'gauge', name: 'strata_other_servers', help: 'Other servers of the same store.', labels: [] },
  unreadableKeys: { kind: 'gauge', name: 'strata_unreadable_keys', help: 'Keys in etcd whose value cannot be served.', labels: [] },
  historyBytes: { kind: 'gauge', name: 'strata_history_bytes', help: 'Bytes of the bodies of the changes in that log.', labels: [] },
  eventLoopDelayP99Seconds: {
    kind: 'gauge',
    name: 'strata_event_loop_delay_p99_seconds',
    help: 'How late timers fired, 99th percentile of the last whole window.',
    labels: [],
  },
  eventLoopDelayMaxSeconds: {
    kind: 'gauge',
    name: 'strata_event_loop_delay_max_seconds',
    help: 'How late the latest timer fired, in the last whole window and the present one.',
    labels: [],
  },
} as const satisfies MetricTable;

/**
 * The metrics of an agent (`strata push`). An agent has one shard and one cache at a time, so the
 * only labels are states.
 */
export const agentMetricTable = {
  objectsRead: {
    kind: 'counter',
    name: 'strata_agent_objects_read_total',
    help: 'Objects and deletions that have come from the shard, those included that are not pushed.',
    labels: [],
  },
  objectsPushed: {
    kind: 'counter',
    name: 'strata_agent_objects_pushed_total',
    help: 'Objects and deletions that a cache has made durable.',
    labels: [],
  },
  objectsRefused: {
    kind: 'counter',
    name: 'strata_agent_objects_refused_total',
    help: 'Objects that a cache has refused, or that are too large for it.',
    labels: [],
  },
  lagSeconds: {
    kind: 'gauge',
    name: 'strata_agent_lag_seconds',
    help: 'Time since the agent read the oldest object that no cache has acknowledged; 0 if there is none.',
    labels: [],
  },
  slices: { kind: 'gauge', name: 'strata_agent_slices', help: 'Types that the agent pushes, by phase.', labels: ['phase'] },
  reconnects: {
    kind: 'counter',
    name: 'strata_agent_reconnects_total',
    help: 'Times the agent tried again after a connection to a cache had ended or failed.',
    labels: [],
  },
  shardReachable: {
    kind: 'gauge',
    name: 'strata_agent_shard_reachable',
    help: '1 while the shard answers and accepts the user of the agent, which asks for its version every five seconds.',
    labels: [],
  },
  cacheReachable: {
    kind: 'gauge',
    name: 'strata_agent_cache_reachable',
    help: '1 while a cache has accepted the agent, as the pusher of its shard or as a standby.',
    labels: [],
  },
  standby: {
    kind: 'gauge',
    name: 'strata_agent_standby',
    help: '1 while the agent waits as a standby, because another agent has its shard.',
    labels: [],
  },
  ready: metricTable.ready,
  certificateExpiresSeconds: metricTable.certificateExpiresSeconds,
  buildInfo: metricTable.buildInfo,
} as const satisfies MetricTable;

/**
 * The metrics that a front door has beside a server's. Names, labels and buckets are the same as in
 * kcp's front proxy, because kcp's dashboards use them.
 */
export const frontDoorMetricTable = {
  requestSeconds: {
    kind: 'histogram',
    name: 'proxy_request_duration_seconds',
    help: 'Time from a request to the end of its answer, watches and websockets included. Answers of the front door itself, such as /metrics, are not observed.',
    labels: ['method', 'code'],
    buckets: [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60],
  },
  indexedClusters: {
    kind: 'gauge',
    name: 'kcp_indexed_logicalclusters',
    help: 'Logical clusters that a Workspace leads to, by the shard of the Workspace.',
    labels: ['shard'],
  },
  requestBodyBytes: {
    kind: 'counter',
    name: 'kcp_backend_rq_body_bytes',
    help: 'Bytes of the bodies of requests that were passed on, by the shard of the logical cluster; bytes of websockets are not counted.',
    labels: ['shard'],
  },
  answerBodyBytes: {
    kind: 'counter',
    name: 'kcp_backend_rs_body_bytes',
    help: 'Bytes of the bodies of answers that were passed on, by the shard of the logical cluster.',
    labels: ['shard'],
  },
  tlsErrors: {
    kind: 'counter',
    name: 'kcp_listener_tls_connection_error',
    help: 'Requests that failed because of TLS with a backend, by the kind of error and the shard (unknown if the path names no logical cluster).',
    labels: ['shard', 'error_type'],
  },
} as const satisfies MetricTable;
