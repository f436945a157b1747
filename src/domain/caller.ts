import type { Clock } from './ports.js';
import type { ShardName } from './shard.js';

/**
 * The identity in the one URI of a client certificate: `strata://shard/NAME`, or `cache`, `reader`
 * or `syncer` in place of `shard`.
 */
export type SpokenFor = Readonly<{ kind: 'shard'; shard: ShardName }> | Readonly<{ kind: 'cache' | 'reader' | 'syncer'; name: string }>;

export function formatSpokenFor(spokenFor: SpokenFor): string {
  return `strata://${spokenFor.kind}/${spokenFor.kind === 'shard' ? spokenFor.shard : spokenFor.name}`;
}

/**
 * Who sent a request, according to a verified client certificate: `user` is its CN, `groups` are
 * its Os, `validUntilMs` is when it expires. An authenticating proxy names its user in headers. The
 * proxy itself has no groups, and so no rights.
 */
export type Caller = Readonly<{
  user: string;
  groups: readonly string[];
  speaksFor?: SpokenFor;
  isAuthenticatingProxy?: true;
  validUntilMs?: number;
}>;

/** The caller of a connection without a client certificate that a trusted CA signed. */
export const anonymous: Caller = { user: 'system:anonymous', groups: ['system:unauthenticated'] };

const authenticated = 'system:authenticated';

/**
 * Adds `system:authenticated` as Kubernetes does, unless the user or a group already says whether
 * the caller is authenticated.
 */
export function withAuthenticated(user: string, groups: readonly string[]): readonly string[] {
  const isSaid = user === anonymous.user || [authenticated, ...anonymous.groups].some((group) => groups.includes(group));
  return isSaid ? groups : [...groups, authenticated];
}

/**
 * The caller at that time: anonymous once the certificate has expired, because a connection may
 * outlive its certificate.
 */
export function callerAt(caller: Caller, nowMs: number): Caller {
  return caller.validUntilMs !== undefined && caller.validUntilMs < nowMs ? anonymous : caller;
}

/**
 * Runs the task when the caller's certificate expires, at once if it has expired; never if it has
 * no expiry. The returned function cancels the task.
 */
export function atExpiry(
  { validUntilMs }: Pick<Caller, 'validUntilMs'>,
  clock: Pick<Clock, 'wallMs' | 'after'>,
  task: () => void,
): () => void {
  return validUntilMs === undefined ? () => {} : clock.after(Math.max(0, validUntilMs - clock.wallMs()), task);
}

/** Whether the caller may do everything. kcp's own clients are in the group system:masters. */
export function isMaster(caller: Caller): boolean {
  return caller.groups.includes('system:masters');
}

/** Whether the caller may read everything. A syncer may read only what is labelled for it. */
export function mayRead(caller: Caller): boolean {
  return isMaster(caller) || (caller.speaksFor !== undefined && caller.speaksFor.kind !== 'syncer');
}

/** kcp has a ClusterRole of this name that allows reading metrics. */
const metricsReaders = 'system:kcp:metrics-reader';

/** Metrics name shards, types and caches, but contain no objects. */
export function mayReadMetrics(caller: Caller): boolean {
  return mayRead(caller) || caller.groups.includes(metricsReaders);
}

export function mayReadFor(caller: Caller, syncer: string): boolean {
  return isMaster(caller) || (caller.speaksFor?.kind === 'syncer' && caller.speaksFor.name === syncer);
}

/** True for masters, shards and caches. */
export function mayOpenSession(caller: Caller): boolean {
  return mayRead(caller) && (isMaster(caller) || caller.speaksFor?.kind !== 'reader');
}

export function isShard({ speaksFor }: Caller, shard: ShardName): boolean {
  return speaksFor?.kind === 'shard' && speaksFor.shard === shard;
}

export function mayWriteFor(caller: Caller, shard: ShardName): boolean {
  return isMaster(caller) || isShard(caller, shard);
}

/** The kinds of callers that metrics distinguish. `other`: the certificate grants nothing. */
export const callerKinds = ['masters', 'shard', 'cache', 'reader', 'syncer', 'other', 'anonymous'] as const;
export type CallerKind = (typeof callerKinds)[number];

export function kindOf(caller: Caller): CallerKind {
  if (isMaster(caller)) return 'masters';
  if (caller.speaksFor !== undefined) return caller.speaksFor.kind;
  return caller === anonymous ? 'anonymous' : 'other';
}
