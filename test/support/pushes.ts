/** Pushes to test with: what a pusher of `amber` says, in its first incarnation unless told otherwise, or what a link does. */
import { parseCanonicalPath } from '../../src/domain/cluster.js';
import type { PushLane } from '../../src/domain/ports.js';
import type { Incarnation, Push, PushOutcome, Speaker } from '../../src/domain/push.js';
import type { LinkSide, Side } from '../../src/domain/side.js';
import type { Slice } from '../../src/domain/slice.js';
import { aBody, aKey, shardName, type Place } from './objects.js';

export const firstIncarnation: Incarnation = 1_000;

type Content = Readonly<{ labels?: Record<string, string>; path?: string; spec?: unknown }>;

type ClaimParts = Readonly<{
  shard?: string;
  incarnation?: Incarnation;
  side?: Side | undefined;
  removed?: boolean;
  origin?: string;
  plain?: boolean;
}>;

/** A pusher by its incarnation, a link by its side. */
type By = Incarnation | LinkSide;

export function aSlice(place: Place = {}): Slice {
  const { shard, resource } = aKey(place);
  return { shard, resource };
}

function aSpeaker(by: By = firstIncarnation): Speaker {
  return typeof by === 'number' ? { kind: 'pusher', incarnation: by } : { kind: 'link', side: by };
}

/** The id of the process that pushes in an incarnation. */
export function aProcess(incarnation: Incarnation): string {
  return `process-${incarnation}`;
}

/**
 * That a pusher comes, or what this cache has chosen. Of a pusher, `incarnation` is what it is given where a lower one is known: it names the one
 * before. Where one just below is known of another process, it is fenced.
 */
export function aClaim(of: string | ClaimParts = {}, ofIncarnation = firstIncarnation): Push {
  const parts = typeof of === 'string' ? { shard: of } : of;
  const side = 'side' in parts ? parts.side : 'local';
  const { incarnation = ofIncarnation, removed = false, plain = false } = parts;
  const shard = shardName(parts.shard ?? 'amber');
  const { origin = side === 'local' ? 'here' : 'far' } = parts;
  if (side === 'local' && !plain && !removed)
    return { kind: 'acquire', shard, process: aProcess(incarnation), incarnation: incarnation - 1, nowMs: 0 };
  return { kind: 'claim', shard, incarnation, process: plain || removed ? '' : aProcess(incarnation), removed, origin, side, plain };
}

export function aBegin(place: Place = {}, by: By = firstIncarnation): Push {
  return { kind: 'begin', slice: aSlice(place), by: aSpeaker(by) };
}

export function anEnd(place: Place = {}, by: By = firstIncarnation, edge = ''): Push {
  return { kind: 'end', slice: aSlice(place), by: aSpeaker(by), edge };
}

export function aDoubt(place: Place = {}, by: By = firstIncarnation): Push {
  return { kind: 'doubt', slice: aSlice(place), by: aSpeaker(by) };
}

export function aCompare(digest: string, place: Place = {}, by: By = firstIncarnation): Push {
  return { kind: 'compare', slice: aSlice(place), by: aSpeaker(by), digest };
}

export function aState(place: Place = {}, content: Content = {}, by: By = firstIncarnation): Push {
  const key = aKey(place);
  const path = content.path === undefined ? undefined : parseCanonicalPath(content.path);
  return { kind: 'state', key, body: aBody(key, content), path, by: aSpeaker(by) };
}

export function aKeep(place: Place = {}, by: By = firstIncarnation): Push {
  return { kind: 'keep', key: aKey(place), by: aSpeaker(by) };
}

export function aRetract(place: Place = {}, by: By = firstIncarnation): Push {
  return { kind: 'retract', key: aKey(place), by: aSpeaker(by) };
}

export function aMeet(cacheId: string, side: LinkSide = 'parent'): Push {
  return { kind: 'meet', side, cacheId };
}

export function aReach(position: string, side: LinkSide = 'parent'): Push {
  return { kind: 'reach', side, position };
}

export function anAssume(shard = 'amber'): Push {
  return { kind: 'assume', shard: shardName(shard) };
}

export function aClear(shard = 'amber', { fence = true, nowMs = 5_000 } = {}): Push {
  return { kind: 'clear', shard: shardName(shard), fence, nowMs };
}

export function aDrop(place: Place = {}): Push {
  return { kind: 'drop', resource: aKey(place).resource };
}

/** A statement from begin to end. */
export function aStatement(place: Place, states: readonly Push[], by: By = firstIncarnation, edge = ''): readonly Push[] {
  return [aBegin(place, by), ...states, anEnd(place, by, edge)];
}

/** One word for each outcome: `written`, `unchanged`, `swept 2`, `fenced by 7`. */
export function outcomeTexts(outcomes: readonly PushOutcome[]): readonly string[] {
  return outcomes.map((outcome) => {
    switch (outcome.kind) {
      case 'swept':
        return `swept ${outcome.removed}`;
      case 'fenced':
        return `fenced by ${outcome.holder?.incarnation ?? 0}${outcome.holder?.removed === true ? ', removed' : ''}`;
      case 'bound':
        return `bound to ${outcome.name}`;
      default:
        return outcome.kind;
    }
  });
}

/** Pushes and expects that nothing was fenced or lost on the way. */
export async function mustPush(lane: PushLane, pushes: readonly Push[]): Promise<readonly string[]> {
  const texts = outcomeTexts(await lane.push(pushes));
  const bad = texts.find((text) => !/^(?:written|unchanged|swept|acquired)/.test(text));
  if (bad !== undefined) throw new Error(`not pushed: ${bad}`);
  return texts;
}
