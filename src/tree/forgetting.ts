/**
 * On an operator's request, forgets a disconnected child that will not reconnect. The store drops
 * its id and its position, and this cache drops its reports. The child's shards then have no via:
 * this cache serves their objects unchanged until a cache claims the shards or an operator removes
 * them.
 *
 * M1 A child cannot connect while it is being forgotten.
 */
import type { Log } from '../diagnostics/log.js';
import { Refused } from '../domain/errors.js';
import type { Caches } from '../domain/ports.js';
import type { PushLane, Writer } from '../domain/store-port.js';
import { childNeighbour, type Neighbour } from '../domain/via.js';
import type { PublishedState } from '../domain/published-state.js';
import type { ChildShards } from './child-shards.js';
import type { Children } from './children.js';

export type ForgettingParts = Readonly<{
  store: Readonly<{ writer: Pick<Writer, 'lane'>; state: Pick<PublishedState, 'shards' | 'link'> }>;
  children: Pick<Children, 'find' | 'without'>;
  childShards: Pick<ChildShards, 'leave'>;
  onForgotten: (neighbour: Neighbour) => void;
  log: Pick<Log, 'info'>;
}>;

export class Forgetting implements Caches {
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
      const [outcome] = await this.#lane.push([{ kind: 'leave', neighbour }]);
      if (outcome?.kind === 'unavailable') throw new Refused(outcome.refusal);
      this.#left(neighbour);
      return { shards };
    });
    if (done === undefined) {
      const message = `the cache ${name} is connected: only a disconnected cache can be forgotten`;
      throw new Refused({ reason: 'Conflict', message, details: { name } });
    }
    log.info('link.child-forgotten', { name, ...done });
    return done;
  }

  #left(neighbour: Neighbour): void {
    const { childShards, onForgotten } = this.#parts;
    childShards.leave(neighbour);
    onForgotten(neighbour);
  }
}
