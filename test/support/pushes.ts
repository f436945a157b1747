/**
 * Pushes to test with: those of a pusher of `amber`, in its first term unless a test names another,
 * and those of a link.
 */
import { parseCanonicalPath } from '../../src/domain/cluster.js';
import type { PushLane } from '../../src/domain/store-port.js';
import type { Term, Push, PushOutcome, Speaker } from '../../src/domain/push.js';
import type { Neighbour, Via } from '../../src/domain/via.js';
import type { Slice } from '../../src/domain/slice.js';
import { aBody, aKey, shardName, type Content, type Place } from './objects.js';

export const firstTerm: Term = 1_000;

type ClaimParts = Readonly<{
  shard?: string;
  term?: Term;
  via?: Via | undefined;
  removed?: boolean;
  origin?: string;
  plain?: boolean;
}>;

/** Who pushes: a pusher, by its term, or a link, by its via. */
type By = Term | Neighbour;

export function aSlice(place: Place = {}): Slice {
  const { shard, resource } = aKey(place);
  return { shard, resource };
}

function aSpeaker(by: By = firstTerm): Speaker {
  return typeof by === 'number' ? { kind: 'pusher', term: by } : { kind: 'link', neighbour: by };
}

export function aProcess(term: Term): string {
  return `process-${term}`;
}

/**
 * A pusher arrives, or this cache chooses a claim. The pusher names the term before `term`, so it
 * gets `term` if the store knows only lower ones. It is fenced if the store knows `term` with
 * another process.
 */
export function aClaim(of: string | ClaimParts = {}, ofTerm = firstTerm): Push {
  const parts = typeof of === 'string' ? { shard: of } : of;
  const via = 'via' in parts ? parts.via : 'local';
  const { term = ofTerm, removed = false, plain = false } = parts;
  const shard = shardName(parts.shard ?? 'amber');
  const { origin = via === 'local' ? 'here' : 'far' } = parts;
  if (via === 'local' && !plain && !removed) return { kind: 'acquire', shard, process: aProcess(term), term: term - 1, nowMs: 0 };
  return { kind: 'claim', shard, term, process: plain || removed ? '' : aProcess(term), removed, origin, via, plain };
}

export function aBegin(place: Place = {}, by: By = firstTerm): Push {
  return { kind: 'begin', slice: aSlice(place), by: aSpeaker(by) };
}

export function anEnd(place: Place = {}, by: By = firstTerm, filterHash = ''): Push {
  return { kind: 'end', slice: aSlice(place), by: aSpeaker(by), filterHash };
}

/** Begins a sync of only the place's logical cluster. */
export function aClusterBegin(place: Place = {}, by: By = firstTerm): Push {
  return { kind: 'begin', slice: aSlice(place), cluster: aKey(place).cluster, by: aSpeaker(by) };
}

export function aClusterEnd(place: Place = {}, by: By = firstTerm): Push {
  return { kind: 'end', slice: aSlice(place), cluster: aKey(place).cluster, by: aSpeaker(by), filterHash: '' };
}

export function anInvalidation(place: Place = {}, by: By = firstTerm): Push {
  return { kind: 'invalidate', slice: aSlice(place), by: aSpeaker(by) };
}

export function aCompare(digest: string, place: Place = {}, by: By = firstTerm): Push {
  return { kind: 'compare', slice: aSlice(place), by: aSpeaker(by), digest };
}

export function anUpsert(place: Place = {}, content: Content = {}, by: By = firstTerm): Push {
  const key = aKey(place);
  const path = content.path === undefined ? undefined : parseCanonicalPath(content.path);
  return { kind: 'upsert', key, body: aBody(key, content), path, by: aSpeaker(by) };
}

export function aKeep(place: Place = {}, by: By = firstTerm): Push {
  return { kind: 'keep', key: aKey(place), by: aSpeaker(by) };
}

export function aRetract(place: Place = {}, by: By = firstTerm): Push {
  return { kind: 'retract', key: aKey(place), by: aSpeaker(by) };
}

export function aMeet(cacheId: string, neighbour: Neighbour = 'parent'): Push {
  return { kind: 'meet', neighbour, cacheId };
}

export function aReach(position: string, neighbour: Neighbour = 'parent'): Push {
  return { kind: 'reach', neighbour, position };
}

export function anAssume(shard = 'amber'): Push {
  return { kind: 'assume', shard: shardName(shard) };
}

export function aClear(
  shard = 'amber',
  { fence = true, nowMs = 5_000, through }: { fence?: boolean; nowMs?: number; through?: number } = {},
): Push {
  return { kind: 'clear', shard: shardName(shard), fence, nowMs, ...(through !== undefined && { through }) };
}

/** Drops the objects up to `through`; by default all that exist when it begins. */
export function aDrop(place: Place = {}, through = Number.MAX_SAFE_INTEGER): Push {
  return { kind: 'drop', resource: aKey(place).resource, through };
}

export function aFullSync(place: Place, states: readonly Push[], by: By = firstTerm, filterHash = ''): readonly Push[] {
  return [aBegin(place, by), ...states, anEnd(place, by, filterHash)];
}

/** One word or two for each outcome: `written`, `unchanged`, `swept 2`, `fenced by 7`. */
export function outcomeTexts(outcomes: readonly PushOutcome[]): readonly string[] {
  return outcomes.map((outcome) => {
    switch (outcome.kind) {
      case 'swept':
        return `swept ${outcome.removed}`;
      case 'fenced':
        return `fenced by ${outcome.holder?.term ?? 0}${outcome.holder?.removed === true ? ', removed' : ''}`;
      case 'bound':
        return `bound to ${outcome.name}`;
      default:
        return outcome.kind;
    }
  });
}

/** Pushes, and throws if an outcome says that something was fenced or lost. */
export async function mustPush(lane: PushLane, pushes: readonly Push[]): Promise<readonly string[]> {
  const texts = outcomeTexts(await lane.push(pushes));
  const bad = texts.find((text) => !/^(?:written|unchanged|swept|acquired)/.test(text));
  if (bad !== undefined) throw new Error(`not pushed: ${bad}`);
  return texts;
}
