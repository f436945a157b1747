import type { Clock } from './ports.js';
import type { ShardName } from './shard.js';

/** Whom a certificate speaks for: the one URI in it, `strata://shard/NAME` or the same of a cache, a reader or a syncer. */
export type SpokenFor = Readonly<{ kind: 'shard'; shard: ShardName }> | Readonly<{ kind: 'cache' | 'reader' | 'syncer'; name: string }>;

export function formatSpokenFor(spokenFor: SpokenFor): string {
  return `strata://${spokenFor.kind}/${spokenFor.kind === 'shard' ? spokenFor.shard : spokenFor.name}`;
}

/**
 * Who sent a request, by a verified client certificate: CN, the Os, whom it speaks for, and until when all this is true. An authenticating proxy says in its
 * headers for whom it asks, and has no groups, and so no rights, of its own.
 */
export type Caller = Readonly<{
  user: string;
  groups: readonly string[];
  speaksFor?: SpokenFor;
  isAuthenticatingProxy?: true;
  validUntilMs?: number;
}>;

/** The caller of a connection without a certificate, or with one that no trusted CA signed. */
export const anonymous: Caller = { user: 'system:anonymous', groups: ['system:unauthenticated'] };

const authenticated = 'system:authenticated';

/** The groups that Kubernetes gives somebody: nobody becomes authenticated who is said not to be. */
export function withAuthenticated(user: string, groups: readonly string[]): readonly string[] {
  const isSaid = user === anonymous.user || [authenticated, ...anonymous.groups].some((group) => groups.includes(group));
  return isSaid ? groups : [...groups, authenticated];
}

/** The caller at that time: a connection may outlive the certificate it was opened with. */
export function callerAt(caller: Caller, nowMs: number): Caller {
  return caller.validUntilMs !== undefined && caller.validUntilMs < nowMs ? anonymous : caller;
}

/** Runs the task when the caller's certificate runs out, at once if it has; never without one. The result takes the task back. */
export function atExpiry(
  { validUntilMs }: Pick<Caller, 'validUntilMs'>,
  clock: Pick<Clock, 'wallMs' | 'after'>,
  task: () => void,
): () => void {
  return validUntilMs === undefined ? () => {} : clock.after(Math.max(0, validUntilMs - clock.wallMs()), task);
}

/** May do everything: what kcp's own clients hold. */
export function isMaster(caller: Caller): boolean {
  return caller.groups.includes('system:masters');
}

/** May read everything: masters, and every shard, cache and reader. A syncer reads what is for it alone. */
export function mayRead(caller: Caller): boolean {
  return isMaster(caller) || (caller.speaksFor !== undefined && caller.speaksFor.kind !== 'syncer');
}

/** As in kcp, where a role of this name allows it. */
const metricsReaders = 'system:kcp:metrics-reader';

/** May read metrics, which name shards, types and caches and nothing that these have. */
export function mayReadMetrics(caller: Caller): boolean {
  return mayRead(caller) || caller.groups.includes(metricsReaders);
}

/** May read what is labelled for a syncer: masters, and that syncer. */
export function mayReadFor(caller: Caller, syncer: string): boolean {
  return isMaster(caller) || (caller.speaksFor?.kind === 'syncer' && caller.speaksFor.name === syncer);
}

/** May open a session over a websocket, as a shard or a cache. A reader pushes nothing and follows nobody. */
export function maySpeak(caller: Caller): boolean {
  return mayRead(caller) && (isMaster(caller) || caller.speaksFor?.kind !== 'reader');
}

/** Whether the shard itself writes: kcp, by its shard's certificate. */
export function isShard({ speaksFor }: Caller, shard: ShardName): boolean {
  return speaksFor?.kind === 'shard' && speaksFor.shard === shard;
}

/** May write what belongs to a shard: masters, and that shard. */
export function mayWriteFor(caller: Caller, shard: ShardName): boolean {
  return isMaster(caller) || isShard(caller, shard);
}

/** The kinds of callers that metrics distinguish. `other` has a certificate that allows nothing. */
export const callerKinds = ['masters', 'shard', 'cache', 'reader', 'syncer', 'other', 'anonymous'] as const;
export type CallerKind = (typeof callerKinds)[number];

export function kindOf(caller: Caller): CallerKind {
  if (isMaster(caller)) return 'masters';
  if (caller.speaksFor !== undefined) return caller.speaksFor.kind;
  return caller === anonymous ? 'anonymous' : 'other';
}
