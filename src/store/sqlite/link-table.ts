/**
 * The links of this cache: which cache is at the other end of each, and up to where that has told everything (the table `links`,
 * held in memory as well); and the names that children's ids are bound to (the table `children`).
 *
 * I18 A position is that of the cache the link last met: another one at its other end voids it. I19 A cache that came under one
 *     name never comes under another. Bound: a row per link, and one per cache that ever was a child.
 */
import assert from 'node:assert/strict';
import type { LinkState } from '../../domain/push.js';
import { childOf, type LinkSide } from '../../domain/side.js';
import type { Connection } from './database.js';

/** `first`: there was none before. */
export type Meeting = Readonly<{ kind: 'same' } | { kind: 'first' } | { kind: 'another' } | { kind: 'bound'; name: string }>;

export class LinkTable {
  readonly #statements: ReturnType<typeof prepare>;
  readonly #links: Map<LinkSide, LinkState>;
  /** What the commit under way has changed, as it was. */
  readonly #before = new Map<LinkSide, LinkState | undefined>();

  constructor(database: Connection) {
    this.#statements = prepare(database);
    this.#links = new Map(readLinks(database).map((state) => [state.side, state]));
  }

  meet(side: LinkSide, cacheId: string): Meeting {
    const name = childOf(side);
    if (name !== undefined) {
      this.#statements.bind.run(cacheId, name);
      const bound = this.#statements.bound.get(cacheId);
      if (bound !== undefined && bound !== name) return { kind: 'bound', name: bound };
    }
    const known = this.#links.get(side);
    if (known?.cacheId === cacheId) return { kind: 'same' };
    this.#set({ side, cacheId, position: '' });
    return { kind: known === undefined ? 'first' : 'another' };
  }

  reach(side: LinkSide, position: string): void {
    const known = this.#links.get(side);
    assert(known !== undefined, 'a link meets before it reaches');
    if (known.position !== position) this.#set({ ...known, position });
  }

  /** What the commit under way has changed. */
  get changed(): readonly LinkState[] {
    return [...this.#before.keys()].flatMap((side) => this.#links.get(side) ?? []);
  }

  keep(): void {
    this.#before.clear();
  }

  undo(): void {
    for (const [side, before] of this.#before) {
      if (before === undefined) this.#links.delete(side);
      else this.#links.set(side, before);
    }
    this.#before.clear();
  }

  #set(state: LinkState): void {
    const { side, cacheId, position } = state;
    if (!this.#before.has(side)) this.#before.set(side, this.#links.get(side));
    this.#links.set(side, state);
    this.#statements.set.run(side, cacheId, position);
  }
}

export function readLinks(database: Connection): readonly LinkState[] {
  return database.prepare<[], LinkState>(/*sql*/ `SELECT side, cache_id AS cacheId, position FROM links`).all();
}

function prepare(database: Connection) {
  return {
    set: database.prepare(/*sql*/ `INSERT INTO links (side, cache_id, position) VALUES (?, ?, ?)
               ON CONFLICT (side) DO UPDATE SET cache_id = excluded.cache_id, position = excluded.position`),
    bind: database.prepare(/*sql*/ `INSERT INTO children (cache_id, name) VALUES (?, ?) ON CONFLICT (cache_id) DO NOTHING`),
    bound: database.prepare<[string], string>(/*sql*/ `SELECT name FROM children WHERE cache_id = ?`).pluck(),
  };
}
