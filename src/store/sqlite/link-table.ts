/**
 * The links of this cache (the table `links`, also held in memory). For each link: the cache at the
 * other end, and the position up to which that cache has sent everything.
 *
 * I18 A position belongs to the cache that was last at the other end. Another cache there voids the
 *     position.
 * I19 No two children have one cache id. An id belongs to the child that last connected with it,
 *     until that child connects with another id or is forgotten.
 *
 * Bound: `linksMax` rows. Beyond them, the store refuses new children, and still accepts known
 * children.
 */
import { leftLink, type LinkState, type Push } from '../../domain/push.js';
import { childOf, type Neighbour } from '../../domain/via.js';
import { decideMeeting, type Meeting } from '../decide.js';
import type { Connection } from './database.js';

export class LinkTable {
  readonly #statements: ReturnType<typeof prepare>;
  readonly #links: Map<Neighbour, LinkState>;
  /** The links that the commit under way has changed, as they were before the commit. */
  readonly #before = new Map<Neighbour, LinkState | undefined>();

  constructor(database: Connection) {
    this.#statements = prepare(database);
    this.#links = new Map(readLinks(database).map((state) => [state.neighbour, state]));
  }

  /** Records a new cache at the other end, with an empty position. */
  meet(asked: Extract<Push, { kind: 'meet' }>): Meeting {
    const { neighbour, cacheId } = asked;
    const [known, links] = [this.#links.get(neighbour), this.#links.size];
    const met = decideMeeting(asked, { known, links, nameWith: (id) => this.#childWith(id) });
    if (met.kind === 'first' || met.kind === 'another') this.#set({ neighbour, cacheId, position: '' });
    return met;
  }

  /** Returns whether the link is known. A position of a forgotten link is ignored. */
  reach(neighbour: Neighbour, position: string): boolean {
    const known = this.#links.get(neighbour);
    if (known !== undefined && known.position !== position) this.#set({ ...known, position });
    return known !== undefined;
  }

  leave(neighbour: Neighbour): void {
    this.#rememberBefore(neighbour);
    this.#links.delete(neighbour);
    this.#statements.remove.run(neighbour);
  }

  get changed(): readonly LinkState[] {
    return [...this.#before.keys()].map((neighbour) => this.#links.get(neighbour) ?? leftLink(neighbour));
  }

  keep(): void {
    this.#before.clear();
  }

  undo(): void {
    for (const [neighbour, before] of this.#before) {
      if (before === undefined) this.#links.delete(neighbour);
      else this.#links.set(neighbour, before);
    }
    this.#before.clear();
  }

  #childWith(cacheId: string): string | undefined {
    for (const state of this.#links.values())
      if (state.cacheId === cacheId && state.neighbour !== 'parent') return childOf(state.neighbour);
    return undefined;
  }

  #set(state: LinkState): void {
    const { neighbour, cacheId, position } = state;
    this.#rememberBefore(neighbour);
    this.#links.set(neighbour, state);
    this.#statements.set.run(neighbour, cacheId, position);
  }

  #rememberBefore(neighbour: Neighbour): void {
    if (!this.#before.has(neighbour)) this.#before.set(neighbour, this.#links.get(neighbour));
  }
}

export function readLinks(database: Connection): readonly LinkState[] {
  return database.prepare<[], LinkState>(/*sql*/ `SELECT neighbour, cache_id AS cacheId, position FROM links`).all();
}

function prepare(database: Connection) {
  return {
    remove: database.prepare(/*sql*/ `DELETE FROM links WHERE neighbour = ?`),
    set: database.prepare(/*sql*/ `INSERT INTO links (neighbour, cache_id, position) VALUES (?, ?, ?)
               ON CONFLICT (neighbour) DO UPDATE SET cache_id = excluded.cache_id, position = excluded.position`),
  };
}
