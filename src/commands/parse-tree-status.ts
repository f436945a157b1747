/** Parses a cache's report on its neighbours in the tree. Each function throws CacheError. */
import { parseCacheName } from '../domain/cache-name.js';
import { childNeighbour, childOf, type Via } from '../domain/via.js';
import type { Members } from '../domain/members.js';
import type {
  ChildStatus,
  LinkConnection,
  LinkStatus,
  ParentStatus,
  PolicyTexts,
  ReceivingStatus,
  SendingStatus,
  TreeStatus,
} from '../domain/status.js';
import { listOf, numberOf, orNull, orUnreported, recordOf, textOf, truthOf, unread } from './members.js';

export function parseTreeStatus(value: unknown): TreeStatus {
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

export function parseVia(value: unknown): Via {
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
    connection: connectionOf(recordOf(link['connection'])),
    position: orNull(link['position'], textOf),
    sending: orNull(link['sending'], sendingOf),
    receiving: receivingOf(recordOf(link['receiving'])),
    policies: { own: policyOf(policies['own']), other: orNull(policies['other'], policyOf) },
  };
}

function connectionOf(connection: Members): LinkConnection {
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
    unheard: numberOf(receiving['unheard']),
  };
}

function policyOf(value: unknown): PolicyTexts {
  const policy = recordOf(value);
  return { up: textOf(policy['up']), down: textOf(policy['down']) };
}
