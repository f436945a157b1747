/** Pushes to test with: what a pusher of `amber` says, in its first incarnation unless told otherwise. */
import { parseCanonicalPath } from '../../src/domain/cluster.js';
import type { PushLane } from '../../src/domain/ports.js';
import type { Incarnation, Push, PushOutcome } from '../../src/domain/push.js';
import type { Slice } from '../../src/domain/slice.js';
import { aBody, aKey, shardName, type Place } from './objects.js';

export const firstIncarnation: Incarnation = 1_000;

type Content = Readonly<{ labels?: Record<string, string>; path?: string; spec?: unknown }>;

export function aSlice(place: Place = {}): Slice {
  const { shard, resource } = aKey(place);
  return { shard, resource };
}

export function aClaim(shard = 'amber', incarnation = firstIncarnation): Push {
  return { kind: 'claim', shard: shardName(shard), incarnation };
}

export function aBegin(place: Place = {}, incarnation = firstIncarnation): Push {
  return { kind: 'begin', slice: aSlice(place), incarnation };
}

export function anEnd(place: Place = {}, incarnation = firstIncarnation): Push {
  return { kind: 'end', slice: aSlice(place), incarnation };
}

export function aDoubt(place: Place = {}, incarnation = firstIncarnation): Push {
  return { kind: 'doubt', slice: aSlice(place), incarnation };
}

export function aState(place: Place = {}, content: Content = {}, incarnation = firstIncarnation): Push {
  const key = aKey(place);
  const path = content.path === undefined ? undefined : parseCanonicalPath(content.path);
  return { kind: 'state', key, body: aBody(key, content), path, incarnation };
}

export function aKeep(place: Place = {}, incarnation = firstIncarnation): Push {
  return { kind: 'keep', key: aKey(place), incarnation };
}

export function aRetract(place: Place = {}, incarnation = firstIncarnation): Push {
  return { kind: 'retract', key: aKey(place), incarnation };
}

export function aClear(shard = 'amber', { fence = true, nowMs = 5_000 } = {}): Push {
  return { kind: 'clear', shard: shardName(shard), fence, nowMs };
}

export function aDrop(place: Place = {}): Push {
  return { kind: 'drop', resource: aKey(place).resource };
}

/** A statement from begin to end. */
export function aStatement(place: Place, states: readonly Push[], incarnation = firstIncarnation): readonly Push[] {
  return [aBegin(place, incarnation), ...states, anEnd(place, incarnation)];
}

/** One word for each outcome: `written`, `unchanged`, `swept 2`, `fenced by 7`. */
export function outcomeTexts(outcomes: readonly PushOutcome[]): readonly string[] {
  return outcomes.map((outcome) => {
    switch (outcome.kind) {
      case 'swept':
        return `swept ${outcome.removed}`;
      case 'fenced':
        return `fenced by ${outcome.holder}${outcome.removed ? ', removed' : ''}`;
      default:
        return outcome.kind;
    }
  });
}

/** Pushes and expects that nothing was fenced or lost on the way. */
export async function mustPush(lane: PushLane, pushes: readonly Push[]): Promise<readonly string[]> {
  const texts = outcomeTexts(await lane.push(pushes));
  const bad = texts.find((text) => !/^(?:written|unchanged|swept)/.test(text));
  if (bad !== undefined) throw new Error(`not pushed: ${bad}`);
  return texts;
}
