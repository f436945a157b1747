/**
 * On an operator's request, forgets a child that will not come back, or a removed shard.
 *
 *   a child    only while it is not connected. The store drops its id and its position, and this
 *              cache drops its reports. Its shards are nobody's: they are served as they are until
 *              a cache claims them or an operator removes them.
 *   a shard    only if it was removed, holds nothing, and all neighbours have received the removal
 *
 * M1 A child cannot connect while it is being forgotten.
 * M2 When a shard is forgotten, no neighbour still holds it or could send an old claim of it. Every
 *    child has sent a claim that the shard is removed, and so has the parent if it ever claimed the
 *    shard.
 */
import type { Log } from '../diagnostics/log.js';
import { Refused, type Refusal } from '../domain/errors.js';
import type { Caches, Shards } from '../domain/ports.js';
import type { PushLane, Writer } from '../domain/store-port.js';
import type { Push } from '../domain/push.js';
import type { ShardName } from '../domain/shard.js';
import { childOf, childNeighbour, type Neighbour } from '../domain/via.js';
import type { PublishedState } from '../domain/published-state.js';
import type { ChildShards } from './child-shards.js';
import type { Children } from './children.js';
import type { Routes } from './routes.js';

export type ForgettingParts = Readonly<{
  store: Readonly<{
    writer: Pick<Writer, 'lane'>;
    state: Pick<PublishedState, 'shard' | 'shards' | 'slicesOf' | 'link' | 'links'>;
  }>;
  children: Pick<Children, 'find' | 'without'>;
  routes: Pick<Routes, 'claimants' | 'hasRemoved'>;
  childShards: Pick<ChildShards, 'leave' | 'forget'>;
  hasParent: boolean;
  /** Whether the link is open and its other end has reported everything once. */
  hasReported: (neighbour: Neighbour) => boolean;
  onForgotten: (neighbour: Neighbour) => void;
  log: Pick<Log, 'info'>;
}>;

export class Forgetting implements Caches, Pick<Shards, 'forget'> {
  readonly #parts: ForgettingParts;
  readonly #lane: PushLane;

  constructor(parts: ForgettingParts) {
    this.#parts = parts;
    this.#lane = parts.store.writer.lane();
  }

  async leave(name: string): Promise<{ shards: number } | undefined> {
    const { store, children, log } = this.#parts;
    const neighbour = childNeighbour(name);
    if (children.find(name) === undefined && store.state.link(neighbour) === undefined) {
      // The store may have removed the child in an earlier call, and answered `unavailable` to it.
      this.#left(neighbour);
      return undefined;
    }
    const done = await children.without(name, async () => {
      const shards = [...store.state.shards].filter((state) => state.via === neighbour).length;
      if (!(await this.#do({ kind: 'leave', neighbour }))) throw new Error('a child leaves, whatever it had');
      this.#left(neighbour);
      return { shards };
    });
    if (done === undefined) throw new Refused(conflict(name, `the cache ${name} is connected: only a disconnected cache can be forgotten`));
    log.info('link.child-forgotten', { name, ...done });
    return done;
  }

  async forget(shard: ShardName): Promise<boolean> {
    const { store, childShards, log } = this.#parts;
    if (store.state.shard(shard) === undefined) {
      childShards.forget(shard);
      return false;
    }
    const why = this.#whyNot(shard) ?? ((await this.#do({ kind: 'forget', shard })) ? undefined : 'it was claimed again in the meantime');
    if (why !== undefined) throw new Refused(conflict(shard, `the shard ${shard} cannot be forgotten: ${why}`));
    childShards.forget(shard);
    log.info('shard.forgotten', { shard });
    return true;
  }

  #left(neighbour: Neighbour): void {
    const { childShards, onForgotten } = this.#parts;
    childShards.leave(neighbour);
    onForgotten(neighbour);
  }

  #whyNot(shard: ShardName): string | undefined {
    const { store, routes, hasParent, hasReported } = this.#parts;
    const children = [...store.state.links].map(({ neighbour }) => neighbour).filter((neighbour) => neighbour !== 'parent');
    if (store.state.shard(shard)?.removed !== true) return `it was not removed; first run strata shards remove ${shard}`;
    if ([...store.state.slicesOf(shard)].some(({ objects }) => objects > 0)) return 'the removal of its objects is not finished';
    const [claimant] = routes.claimants(shard);
    if (claimant !== undefined) return `${describe(claimant)} claims it, and would bring it back`;
    const neighbours: readonly Neighbour[] = hasParent ? ['parent', ...children] : children;
    const away = neighbours.find((neighbour) => !hasReported(neighbour));
    if (away !== undefined) {
      const remedy = away === 'parent' ? 'wait until it is back' : 'wait until it is back, or forget that cache first';
      return `${describe(away)} is away, or has not sent all that it has; ${remedy}`;
    }
    const unaware = neighbours.find((neighbour) => !routes.hasRemoved(shard, neighbour));
    return unaware && `${describe(unaware)} has not confirmed the removal yet`;
  }

  async #do(push: Push): Promise<boolean> {
    const [outcome] = await this.#lane.push([push]);
    if (outcome?.kind === 'unavailable') throw new Refused(outcome.refusal);
    return outcome?.kind === 'unchanged';
  }
}

function describe(neighbour: Neighbour): string {
  const name = childOf(neighbour);
  return name === undefined ? 'the parent' : `the cache ${name}`;
}

function conflict(name: string, message: string): Refusal {
  return { reason: 'Conflict', message, details: { name } };
}
