/**
 * How much of the server one caller may use at a time. Each limit is a tree of budgets:
 *
 *   limit `max` ─┬─▶ each master: `max`
 *                └─▶ all others: nine tenths ─┬─▶ each caller: `callerSharePercent` of `max`
 *                                             └─▶ all without a certificate: a tenth
 *                                                   └─▶ each address: `callerSharePercent`
 *
 * So no caller starves the others, and masters have room when all others are at their limits. A
 * caller is a user or, without a certificate, an address. A quota lives as long as its caller has a
 * connection.
 */
import { Budget } from '../domain/base/budget.js';
import type { CallerKind } from '../domain/caller.js';

export type Peer = Readonly<{ id: string; kind: CallerKind }>;

export const limitNames = ['requests', 'watches', 'connections', 'bufferedBytes', 'waitingBytes', 'unreadBytes', 'selectorBytes'] as const;
export type LimitName = (typeof limitNames)[number];

export type Limits = Readonly<Record<LimitName, number>>;

export type Quota = Readonly<Record<LimitName, Budget>>;

/** The part of each limit that only masters may use. */
const reservedPart = 0.1;
/** The part for all callers that may request only health. Health itself uses none of it. */
const anonymousPart = 0.1;

export class Quotas {
  readonly #limits: Limits;
  readonly #callerShare: number;
  readonly #everybody: Quota;
  readonly #others: Quota;
  readonly #anonymous: Quota;
  readonly #callers = new Map<string, { readonly quota: Quota; connections: number }>();

  constructor(limits: Limits, { callerSharePercent }: Readonly<{ callerSharePercent: number }>) {
    this.#limits = limits;
    this.#callerShare = callerSharePercent / 100;
    this.#everybody = perLimit((name) => new Budget(limits[name]));
    this.#others = perLimit((name) => new Budget(part(limits[name], 1 - reservedPart), this.#everybody[name]));
    this.#anonymous = perLimit((name) => new Budget(part(limits[name], anonymousPart), this.#others[name]));
  }

  /** Called for each new connection of a caller; returns the caller's quota. */
  join({ id, kind }: Peer): Quota {
    const caller = this.#callers.get(id) ?? { quota: this.#quotaOf(kind), connections: 0 };
    caller.connections += 1;
    this.#callers.set(id, caller);
    return caller.quota;
  }

  /** Called when a connection of the caller is closed and has released its share. */
  leave({ id }: Peer): void {
    const caller = this.#callers.get(id);
    if (caller === undefined) return;
    caller.connections -= 1;
    if (caller.connections === 0) this.#callers.delete(id);
  }

  used(name: LimitName): number {
    return this.#everybody[name].used;
  }

  #quotaOf(kind: CallerKind): Quota {
    if (kind === 'masters') return perLimit((name) => new Budget(this.#limits[name], this.#everybody[name]));
    const above = kind === 'anonymous' ? this.#anonymous : this.#others;
    return perLimit((name) => new Budget(part(this.#limits[name], this.#callerShare), above[name]));
  }
}

function part(limit: number, share: number): number {
  return Math.max(1, Math.floor(limit * share));
}

function perLimit(budget: (name: LimitName) => Budget): Quota {
  return Object.fromEntries(limitNames.map((name) => [name, budget(name)])) as Record<LimitName, Budget>;
}
