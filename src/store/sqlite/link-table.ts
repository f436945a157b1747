/**
 * The links of this cache: which cache is at the other end of each, and up to where that has told everything (the table `links`,
 * held in memory as well).
 *
 * I18 A position is that of the cache the link last met: another one at its other end voids it. I19 No two children have one id: the one that
 *     a child came with last is that child's, until it comes with another or is forgotten. Bound: `linksMax` rows; beyond them no new child
 *     is met, and those that are known come in as ever.
 */
import { leftLink, linksMax, type LinkState } from '../../domain/push.js';
import { childOf, type LinkSide } from '../../domain/side.js';
import type { Connection } from './database.js';

/** `first`: there was none before. */
export type Meeting = Readonly<
  { kind: 'same' } | { kind: 'first' } | { kind: 'another' } | { kind: 'bound'; name: string } | { kind: 'full' }
>;

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
    const known = this.#links.get(side);
    if (known?.cacheId === cacheId) return { kind: 'same' };
    if (side !== 'parent') {
      const name = this.#childWith(cacheId);
      if (name !== undefined) return { kind: 'bound', name };
      if (known === undefined && this.#links.size >= linksMax) return { kind: 'full' };
    }
    this.#set({ side, cacheId, position: '' });
    return { kind: known === undefined ? 'first' : 'another' };
  }

  /** What a link that was forgotten reaches is nothing. */
  reach(side: LinkSide, position: string): void {
    const known = this.#links.get(side);
    if (known !== undefined && known.position !== position) this.#set({ ...known, position });
  }

  leave(side: LinkSide): void {
    this.#note(side);
    this.#links.delete(side);
    this.#statements.remove.run(side);
  }

  /** What the commit under way has changed. */
  get changed(): readonly LinkState[] {
    return [...this.#before.keys()].map((side) => this.#links.get(side) ?? leftLink(side));
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

  #childWith(cacheId: string): string | undefined {
    for (const state of this.#links.values()) if (state.cacheId === cacheId && state.side !== 'parent') return childOf(state.side);
    return undefined;
  }

  #set(state: LinkState): void {
    const { side, cacheId, position } = state;
    this.#note(side);
    this.#links.set(side, state);
    this.#statements.set.run(side, cacheId, position);
  }

  #note(side: LinkSide): void {
    if (!this.#before.has(side)) this.#before.set(side, this.#links.get(side));
  }
}

export function readLinks(database: Connection): readonly LinkState[] {
  return database.prepare<[], LinkState>(/*sql*/ `SELECT side, cache_id AS cacheId, position FROM links`).all();
}

function prepare(database: Connection) {
  return {
    remove: database.prepare(/*sql*/ `DELETE FROM links WHERE side = ?`),
    set: database.prepare(/*sql*/ `INSERT INTO links (side, cache_id, position) VALUES (?, ?, ?)
               ON CONFLICT (side) DO UPDATE SET cache_id = excluded.cache_id, position = excluded.position`),
  };
}
