/**
 * Parses the status report of a cache, which may be older or newer than this program. Unknown
 * members are ignored. A missing member is an error, unless it was added after the first version.
 */
import { parseShardName, type ShardName } from '../domain/shard.js';
import type {
  CertificateStatus,
  ChildStatus,
  HeldRemovalStatus,
  KeptStatus,
  LinkConnection,
  LinkStatus,
  ParentStatus,
  PolicyTexts,
  ReceivingStatus,
  SendingStatus,
  ShardConnection,
  ShardStatus,
  SliceStatus,
  StatusReport,
  TreeStatus,
} from '../domain/status.js';
import type { Members } from '../domain/base/members.js';
import { childNeighbour, childOf, parseCacheName, type Via } from '../domain/via.js';
import { listOf, numberOf, orNull, orUnreported, recordOf, textOf, truthOf, unread } from './members.js';

/** Throws CacheError. */
export function parseStatusReport(text: string): StatusReport {
  const report = recordOf(JSON.parse(text));
  const cache = recordOf(report['cache']);
  return {
    cache: {
      id: textOf(cache['id']),
      version: textOf(cache['version']),
      epoch: numberOf(cache['epoch']),
      resourceVersion: textOf(cache['resourceVersion']),
      ready: truthOf(cache['ready']),
    },
    tree: orUnreported(report['tree'], parseTreeStatus, undefined),
    certificates: orUnreported(report['certificates'], (certificates) => listOf(certificates).map(certificateOf), []),
    shards: listOf(report['shards']).map(shardOf),
    kept: orUnreported(report['kept'], (kept) => listOf(kept).map(keptOf), []),
  };
}

function certificateOf(value: unknown): CertificateStatus {
  const certificate = recordOf(value);
  return {
    use: textOf(certificate['use']),
    file: textOf(certificate['file']),
    subject: textOf(certificate['subject']),
    notAfter: textOf(certificate['notAfter']),
    expiresInMs: numberOf(certificate['expiresInMs']),
  };
}

function shardOf(value: unknown): ShardStatus {
  const status = recordOf(value);
  const term = status['term'] === undefined ? {} : { term: numberOf(status['term']) };
  return {
    shard: nameOf(status['shard']),
    via: orUnreported(status['via'], (via) => orNull(via, parseVia), null),
    ...term,
    removed: truthOf(status['removed']),
    connection: connectionOf(recordOf(status['connection'])),
    standbys: orUnreported(status['standbys'], numberOf, 0),
    unknownTypes: orUnreported(status['unknownTypes'], (types) => listOf(types).map(textOf), []),
    slices: listOf(status['slices']).map(sliceOf),
  };
}

function keptOf(value: unknown): KeptStatus {
  const kept = recordOf(value);
  return {
    shard: nameOf(kept['shard']),
    group: textOf(kept['group']),
    resource: textOf(kept['resource']),
    identity: textOf(kept['identity']),
    name: textOf(kept['name']),
    objects: numberOf(kept['objects']),
  };
}

function nameOf(value: unknown): ShardName {
  const shard = parseShardName(textOf(value));
  if (shard === undefined) throw unread('the name of a shard');
  return shard;
}

function connectionOf(connection: Members): ShardConnection {
  switch (connection['kind']) {
    case 'connected':
      return { kind: 'connected', forMs: numberOf(connection['forMs']), peer: textOf(connection['peer']) };
    case 'away':
      return { kind: 'away', forMs: numberOf(connection['forMs']) };
    case 'plain':
      return { kind: 'plain' };
    default:
      throw unread('a connection');
  }
}

function sliceOf(value: unknown): SliceStatus {
  const slice = recordOf(value);
  const syncedIn = (['this-term', 'earlier', 'never', 'assumed'] as const).find((word) => word === slice['syncedIn']);
  if (syncedIn === undefined) throw unread('how a slice was synced');
  return {
    group: textOf(slice['group']),
    resource: textOf(slice['resource']),
    identity: textOf(slice['identity']),
    everSynced: truthOf(slice['everSynced']),
    whole: orUnreported(slice['whole'], truthOf, false),
    syncedIn,
    current: orUnreported(slice['current'], (current) => orNull(current, truthOf), null),
    objects: numberOf(slice['objects']),
    bytes: numberOf(slice['bytes']),
    digest: orUnreported(slice['digest'], (digest) => orNull(digest, textOf), null),
    changedAgoMs: orNull(slice['changedAgoMs'], numberOf),
    lagMs: orNull(slice['lagMs'], numberOf),
    sourceConnected: orNull(slice['sourceConnected'], truthOf),
    held: orUnreported(slice['held'], (held) => orNull(held, heldOf), null),
  };
}

function heldOf(value: unknown): HeldRemovalStatus {
  const held = recordOf(value);
  return { removes: numberOf(held['removes']), forMs: numberOf(held['forMs']), releaseInMs: numberOf(held['releaseInMs']) };
}

/** Parses a cache's report on its neighbours in the tree. Each function throws CacheError. */
function parseTreeStatus(value: unknown): TreeStatus {
  const tree = recordOf(value);
  return {
    name: orNull(tree['name'], textOf),
    route: listOf(tree['route']).map(textOf),
    hops: orNull(tree['hops'], numberOf),
    complete: orUnreported(tree['complete'], truthOf, false),
    parent: orNull(tree['parent'], parentOf),
    children: listOf(tree['children']).map(childStatusOf),
  };
}

function parseVia(value: unknown): Via {
  if (value === 'local' || value === 'parent') return value;
  const name = parseCacheName(childOf(textOf(value)) ?? '');
  if (name === undefined) throw unread('a via');
  return childNeighbour(name);
}

function parentOf(value: unknown): ParentStatus {
  const parent = recordOf(value);
  return {
    url: textOf(parent['url']),
    failures: numberOf(parent['failures']),
    message: orNull(parent['message'], textOf),
    ...linkOf(parent),
  };
}

function childStatusOf(value: unknown): ChildStatus {
  const child = recordOf(value);
  return { name: textOf(child['name']), agent: orNull(child['agent'], textOf), ...linkOf(child) };
}

function linkOf(link: Members): LinkStatus {
  const policies = recordOf(link['policies']);
  return {
    cacheId: orNull(link['cacheId'], textOf),
    connection: linkConnectionOf(recordOf(link['connection'])),
    position: orNull(link['position'], textOf),
    sending: orNull(link['sending'], sendingOf),
    receiving: receivingOf(recordOf(link['receiving'])),
    policies: { own: policyOf(policies['own']), other: orNull(policies['other'], policyOf) },
  };
}

function linkConnectionOf(connection: Members): LinkConnection {
  const forMs = numberOf(connection['forMs']);
  if (connection['kind'] === 'away') return { kind: 'away', forMs };
  if (connection['kind'] === 'connected') return { kind: 'connected', forMs, peer: textOf(connection['peer']) };
  throw unread('a connection');
}

function sendingOf(value: unknown): SendingStatus {
  const sending = recordOf(value);
  return {
    slices: numberOf(sending['slices']),
    current: numberOf(sending['current']),
    behind: numberOf(sending['behind']),
    lagMs: numberOf(sending['lagMs']),
    resynced: numberOf(sending['resynced']),
    refused: numberOf(sending['refused']),
  };
}

function receivingOf(receiving: Members): ReceivingStatus {
  return {
    claims: orUnreported(receiving['claims'], numberOf, 0),
    slices: numberOf(receiving['slices']),
    current: numberOf(receiving['current']),
    refused: numberOf(receiving['refused']),
    compared: numberOf(receiving['compared']),
    comparedAgoMs: orNull(receiving['comparedAgoMs'], numberOf),
    differed: numberOf(receiving['differed']),
    claimsIgnored: numberOf(receiving['claimsIgnored']),
  };
}

function policyOf(value: unknown): PolicyTexts {
  const policy = recordOf(value);
  return { up: textOf(policy['up']), down: textOf(policy['down']) };
}
