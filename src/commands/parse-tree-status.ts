/** What a cache tells of its neighbours in the tree, as it comes. All of it throws CacheError. */
import { parseCacheName } from '../domain/cache-name.js';
import { childSide, type Side } from '../domain/side.js';
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
import { listOf, numberOf, orNull, orUntold, recordOf, textOf, truthOf, unread, type Members } from './members.js';

export function parseTreeStatus(value: unknown): TreeStatus {
  const tree = recordOf(value);
  return {
    name: orNull(tree['name'], textOf),
    route: listOf(tree['route']).map(textOf),
    hops: orNull(tree['hops'], numberOf),
    complete: orUntold(tree['complete'], truthOf, false),
    parent: orNull(tree['parent'], parentOf),
    children: listOf(tree['children']).map(childStatusOf),
  };
}

export function parseSide(value: unknown): Side {
  if (value === 'local' || value === 'parent') return value;
  const side = textOf(value);
  const name = parseCacheName(side.slice('child/'.length));
  if (name === undefined || side !== childSide(name)) throw unread('a side');
  return childSide(name);
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
    inStep: numberOf(sending['inStep']),
    behind: numberOf(sending['behind']),
    lagMs: numberOf(sending['lagMs']),
    restated: numberOf(sending['restated']),
    refused: numberOf(sending['refused']),
  };
}

function receivingOf(receiving: Members): ReceivingStatus {
  return {
    claims: orUntold(receiving['claims'], numberOf, 0),
    slices: numberOf(receiving['slices']),
    inStep: numberOf(receiving['inStep']),
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
