/**
 * Decides who has a shard, and which cache is at the other end of a link (domain/claim.ts).
 *
 * N1 Each transaction of a pusher or link compares the shard's record. A link's transaction also
 *    compares the link's record. Every new connection writes its record again, with a session that
 *    only the server of that connection remembers. So all transactions of a former connection fail.
 */
import { arrived, claimed, decideClaim, removedAt } from '../../domain/claim.js';
import type { Speaker } from '../../domain/push.js';
import type { ShardName } from '../../domain/shard.js';
import type { Neighbour } from '../../domain/via.js';
import { decideMeeting, voidsShards, speaksFor, withoutVia } from '../decide.js';
import { decided, unchanged, write, writeInSteps, type Plan, type PushOf } from './plan.js';
import { staleSinceOf } from './published-shards.js';
import type { PublishedState } from './published-state.js';
import type { RecordWrites } from './record-writes.js';
import { recordsAtOnce, type LinkRecord } from './records.js';

export type HoldersParts = Readonly<{ cacheId: string; published: PublishedState; records: RecordWrites }>;

export class Holders {
  readonly #parts: HoldersParts;
  /**
   * The sessions of pushers and links that connected to this server, keyed by shard or neighbour.
   */
  readonly #sessions = new Map<string, number>();

  constructor(parts: HoldersParts) {
    this.#parts = parts;
  }

  acquire(arrival: PushOf<'acquire'>): Plan {
    const { shard } = arrival;
    const known = this.#parts.published.shards.state(shard);
    const state = arrived(this.#parts.cacheId, known, arrival);
    if (state === undefined) return decided({ kind: 'fenced', holder: known });
    const session = this.#parts.published.revision;
    return write({ compare: [this.#parts.records.compareShard(shard)], operations: [this.#parts.records.putShard(state, session)] }, () => {
      this.#sessions.set(shard, session);
      return decided({ kind: 'acquired', term: state.term });
    });
  }

  claim(claim: PushOf<'claim'>): Plan {
    const known = this.#parts.published.shards.state(claim.shard);
    const verdict = decideClaim(known, claim);
    if (verdict === 'refused') return decided({ kind: 'fenced', holder: known });
    if (verdict === 'stands') return unchanged;
    return write({ compare: [this.#parts.records.compareShard(claim.shard)], operations: [this.#parts.records.putShard(claimed(claim))] });
  }

  fenced(shard: ShardName, by: Speaker): Plan | undefined {
    const { shards } = this.#parts.published;
    const stored = shards.shard(shard);
    const fenced = decided({ kind: 'fenced', holder: shards.state(shard) });
    if (stored === undefined) return fenced;
    return speaksFor(by, { ...stored.record, shard }) && this.#isPresent(shard, by, stored.record.session) ? undefined : fenced;
  }

  /** Whether the speaker's latest connection is to this server. */
  #isPresent(shard: ShardName, by: Speaker, session: number): boolean {
    if (by.kind === 'pusher') return this.#sessions.get(shard) === session;
    const link = this.#parts.published.shards.link(by.neighbour);
    return link === undefined || this.#sessions.get(by.neighbour) === link.record.session;
  }

  remove({ shard, nowMs }: Pick<PushOf<'clear'>, 'shard' | 'nowMs'>, next: () => Plan): Plan {
    const state = removedAt(this.#parts.cacheId, this.#parts.published.shards.state(shard), { shard, nowMs });
    return write({ compare: [this.#parts.records.compareShard(shard)], operations: [this.#parts.records.putShard(state)] }, next);
  }

  meet(push: PushOf<'meet'>): Plan {
    const { shards } = this.#parts.published;
    const { neighbour, cacheId } = push;
    const known = shards.link(neighbour);
    const met = decideMeeting(push, { known: known?.record, links: shards.linkCount, nameWith: (id) => shards.nameOfChild(id) });
    if (met.kind === 'bound' || met.kind === 'full') return decided(met);
    if (voidsShards(neighbour, met)) {
      const leaves = this.#leaveVias(neighbour, () => this.meet(push));
      if (leaves !== undefined) return leaves;
    }
    const session = this.#parts.published.revision;
    const kept =
      known !== undefined && met.kind === 'same'
        ? { position: known.record.position, staleSince: staleSinceOf(known) }
        : { position: '', staleSince: 0 };
    return write(
      {
        compare: [this.#parts.records.compareLink(neighbour)],
        operations: [this.#parts.records.putLink(neighbour, { cacheId, session, ...kept })],
      },
      () => {
        this.#sessions.set(neighbour, session);
        return unchanged;
      },
    );
  }

  reach({ neighbour, position }: PushOf<'reach'>): Plan {
    const known = this.#parts.published.shards.link(neighbour);
    if (known === undefined || this.#sessions.get(neighbour) !== known.record.session) return unchanged;
    if (known.record.position === position && position !== '') return unchanged;
    const record: LinkRecord = { ...known.record, position, staleSince: position === '' ? 0 : staleSinceOf(known) };
    return write({ compare: [this.#parts.records.compareLink(neighbour)], operations: [this.#parts.records.putLink(neighbour, record)] });
  }

  leave(neighbour: Neighbour): Plan {
    const leaves = this.#leaveVias(neighbour, () => this.leave(neighbour));
    if (leaves !== undefined) return leaves;
    if (this.#parts.published.shards.link(neighbour) === undefined) return unchanged;
    return write({
      compare: [this.#parts.records.compareLink(neighbour)],
      operations: [this.#parts.records.remove({ kind: 'link', neighbour })],
    });
  }

  /**
   * Clears the via of the neighbour's shards in steps, then continues with `next`. Undefined if the
   * neighbour has no shard.
   */
  #leaveVias(neighbour: Neighbour, next: () => Plan): Plan | undefined {
    const states = this.#parts.published.shards
      .states()
      .filter(({ via }) => via === neighbour)
      .slice(0, recordsAtOnce);
    if (states.length === 0) return undefined;
    const written = {
      compare: states.map(({ shard }) => this.#parts.records.compareShard(shard)),
      operations: states.map((state) => this.#parts.records.putShard(withoutVia(state))),
    };
    return writeInSteps(written, next);
  }
}
