/**
 * The neighbours of this cache for the status report, computed on request from open links and, for
 * closed ones, from the store.
 *
 * Bounds: one entry for each child that ever connected. Texts that another cache chose are cut at
 * `textCharactersMax`, policies at `policyCharactersMax`.
 */
import { formatLinkPolicy, type LinkPolicy } from '../domain/link-policy.js';
import { policiesOfChild, type LinkPolicies } from '../domain/link-policies.js';
import type { Clock } from '../domain/ports.js';
import type { LinkState } from '../domain/push.js';
import { childOf, childNeighbour, type Neighbour } from '../domain/via.js';
import type { ChildStatus, LinkConnection, LinkStatus, ParentStatus, PolicyTexts, ReceivingStatus, TreeStatus } from '../domain/status.js';
import type { PublishedState } from '../domain/published-state.js';
import type { Child } from './children.js';
import type { EndPolicy } from './filters/link-filters.js';
import type { LinkState as ParentState } from './links/link.js';
import type { LinkSession } from './links/link-session.js';
import type { ReportedFreshness } from './reported-freshness.js';

type Session = Pick<LinkSession, 'progress' | 'received' | 'otherPolicy'>;
type Open<State> = Omit<State, 'session' | 'gone'> & Readonly<{ session: Session }>;

export type TreeReportParts = Readonly<{
  tree: Readonly<{
    name: string | undefined;
    route: readonly string[];
    isComplete: boolean;
    parent: Extract<ParentState, { kind: 'connecting' }> | Open<Extract<ParentState, { kind: 'open' }>> | undefined;
    children: Iterable<Open<Child>>;
    policies: LinkPolicies;
    claims: ReadonlyMap<Neighbour, number>;
    freshness: Pick<ReportedFreshness, 'presence'>;
  }>;
  known: Pick<PublishedState, 'shards' | 'slicesOf' | 'links'>;
  clock: Clock;
}>;

const textCharactersMax = 200;
const policyCharactersMax = 4_096;

export function treeReport(parts: TreeReportParts): TreeStatus {
  const { tree, known, clock } = parts;
  const links = new Map([...known.links].map((link) => [link.neighbour, link]));
  const nowMs = clock.now();
  const view: View = { ...parts, links, nowMs, held: countHeld(known), claims: tree.claims };
  const hops = tree.parent !== undefined && tree.route.length === 1 ? null : tree.route.length - 1;
  return {
    name: tree.name ?? null,
    route: tree.route,
    hops,
    complete: tree.isComplete,
    parent: parentStatus(view),
    children: childStatuses(view),
  };
}

type Held = Readonly<{ slices: number; current: number }>;

type View = TreeReportParts &
  Readonly<{
    links: ReadonlyMap<Neighbour, LinkState>;
    nowMs: number;
    held: ReadonlyMap<Neighbour, Held>;
    claims: ReadonlyMap<Neighbour, number>;
  }>;

function countHeld(known: TreeReportParts['known']): ReadonlyMap<Neighbour, Held> {
  const held = new Map<Neighbour, Held>();
  for (const { shard, via } of known.shards) {
    if (via === undefined || via === 'local') continue;
    let { slices, current } = held.get(via) ?? { slices: 0, current: 0 };
    for (const { filterHash } of known.slicesOf(shard)) {
      slices += 1;
      if (filterHash !== '') current += 1;
    }
    held.set(via, { slices, current });
  }
  return held;
}

function parentStatus(view: View): ParentStatus | null {
  const { parent, policies } = view.tree;
  if (parent === undefined) return null;
  const { origin, host } = new URL(parent.url);
  const open = parent.kind === 'open' ? parent : undefined;
  const connection = open === undefined ? away('parent', view) : connected(open.sinceMs, host, view.nowMs);
  const own: EndPolicy = { up: policies.forward, down: policies.follow };
  const link = linkStatus('parent', { connection, session: open?.session, cacheId: open?.cacheId, own }, view);
  const { failures, message } = parent.kind === 'connecting' ? parent : { failures: 0, message: '' };
  return { url: origin, failures, message: message === '' ? null : cut(message, textCharactersMax), ...link };
}

function childStatuses(view: View): readonly ChildStatus[] {
  const connectedNow = new Map([...view.tree.children].map((child) => [child.name, child]));
  const known = [...view.links.keys()].flatMap((neighbour) => childOf(neighbour) ?? []);
  return [...new Set([...connectedNow.keys(), ...known])].toSorted().map((name) => {
    const child = connectedNow.get(name);
    const neighbour = childNeighbour(name);
    const { accept, offer } = policiesOfChild(view.tree.policies, name);
    const connection = child === undefined ? away(neighbour, view) : connected(child.sinceMs, child.peer, view.nowMs);
    const own: EndPolicy = { up: accept, down: offer };
    const agent = child === undefined ? null : cut(child.agent, textCharactersMax);
    return { name, agent, ...linkStatus(neighbour, { connection, session: child?.session, cacheId: child?.cacheId, own }, view) };
  });
}

function linkStatus(
  neighbour: Neighbour,
  end: Readonly<{ connection: LinkConnection; session: Session | undefined; cacheId: string | undefined; own: EndPolicy }>,
  { links, held, claims, nowMs }: View,
): LinkStatus {
  const { connection, session, own } = end;
  const kept = links.get(neighbour);
  const position = kept?.position ?? '';
  return {
    cacheId: end.cacheId ?? kept?.cacheId ?? null,
    connection,
    position: position === '' ? null : position,
    sending: session?.progress ?? null,
    receiving: { claims: claims.get(neighbour) ?? 0, ...receiving(held.get(neighbour), session, nowMs) },
    policies: { own: textsOf(own), other: session?.otherPolicy === undefined ? null : textsOf(session.otherPolicy) },
  };
}

function receiving(held: Held = { slices: 0, current: 0 }, session: Session | undefined, nowMs: number): Omit<ReceivingStatus, 'claims'> {
  const { compared = 0, comparedMs = 0, differed = 0, refused = 0, claimsIgnored = 0 } = session?.received ?? {};
  return { ...held, refused, compared, comparedAgoMs: compared === 0 ? null : age(comparedMs, nowMs), differed, claimsIgnored };
}

function connected(sinceMs: number, peer: string, nowMs: number): LinkConnection {
  return { kind: 'connected', forMs: age(sinceMs, nowMs), peer };
}

function away(neighbour: Neighbour, { tree, nowMs }: View): LinkConnection {
  return { kind: 'away', forMs: age(tree.freshness.presence(neighbour).sinceMs, nowMs) };
}

function textsOf({ up, down }: EndPolicy): PolicyTexts {
  return { up: textOf(up), down: textOf(down) };
}

function textOf(policy: LinkPolicy): string {
  return cut(formatLinkPolicy(policy), policyCharactersMax);
}

function cut(text: string, charactersMax: number): string {
  return text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;
}

function age(sinceMs: number, nowMs: number): number {
  return Math.max(0, nowMs - sinceMs);
}
