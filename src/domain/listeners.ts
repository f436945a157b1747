import type { Subscription } from './ports.js';

/** Those who hear of something, in the order in which they came. */
export class Listeners<News> {
  readonly #all = new Set<(news: News) => void>();

  subscribe(listener: (news: News) => void): Subscription {
    // Two may listen with one function.
    const own = (news: News): void => listener(news);
    this.#all.add(own);
    return { cancel: () => this.#all.delete(own) };
  }

  tell(news: News): void {
    for (const listener of this.#all) listener(news);
  }
}
