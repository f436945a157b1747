/**
 * What the committer remembers of statements and removals under way. None of it is on disk: a restart or a failed commit forgets it,
 * and an `end` then finds that it never began.
 *
 * Bound: one statement per slice and one removal per shard, each with its survey.
 */
import type { Resource } from '../../domain/resource.js';
import type { Revision } from '../../domain/revision.js';
import type { ShardName } from '../../domain/shard.js';
import { Survey } from './survey.js';

/** A type as the tables know it. */
export type NumberedResource = Readonly<{ id: number; resource: Resource }>;

/** Goes over the objects of a shard in key order, type by type, and removes what its survey did not hear of. */
export type Walk = {
  readonly shard: ShardName;
  readonly survey: Survey;
  /** What is still to be gone over; the first one behind `after`. */
  readonly resources: NumberedResource[];
  after: readonly [cluster: string, namespace: string, name: string];
};

export type Statement = { readonly survey: Survey; walk: Walk | undefined };

export class Statements {
  readonly #statements = new Map<ShardName, Map<number, Statement>>();
  readonly #removals = new Map<ShardName, Walk>();

  /** Replaces the one that is under way. */
  begin(shard: ShardName, resource: number, start: Revision): void {
    const ofShard = this.#statements.get(shard) ?? new Map<number, Statement>();
    this.#statements.set(shard, ofShard.set(resource, { survey: new Survey(start), walk: undefined }));
  }

  running(shard: ShardName, resource: number): Statement | undefined {
    return this.#statements.get(shard)?.get(resource);
  }

  forget(shard: ShardName, resource: number): void {
    this.#statements.get(shard)?.delete(resource);
  }

  forgetShard(shard: ShardName): void {
    this.#statements.delete(shard);
  }

  forgetAll(): void {
    this.#statements.clear();
    this.#removals.clear();
  }

  removal(shard: ShardName): Walk | undefined {
    return this.#removals.get(shard);
  }

  beginRemoval(shard: ShardName, start: Revision, resources: readonly NumberedResource[]): Walk {
    const walk = aWalk(shard, new Survey(start), resources);
    this.#removals.set(shard, walk);
    return walk;
  }

  endRemoval(shard: ShardName): void {
    this.#removals.delete(shard);
  }

  confirm(shard: ShardName, resource: number, revision: Revision): void {
    this.running(shard, resource)?.survey.confirm(revision);
    this.#removals.get(shard)?.survey.confirm(revision);
  }

  restated(shard: ShardName, resource: number, from: Revision, to: Revision): void {
    this.running(shard, resource)?.survey.restate(from, to);
    this.#removals.get(shard)?.survey.restate(from, to);
  }
}

export function aWalk(shard: ShardName, survey: Survey, resources: readonly NumberedResource[]): Walk {
  return { shard, survey, resources: [...resources], after: ['', '', ''] };
}
