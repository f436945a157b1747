import type { Subscription } from '../ports.js';

/** Listeners, called in the order of their subscription. */
export class Listeners<News> {
  readonly #all = new Set<(news: News) => void>();

  subscribe(listener: (news: News) => void): Subscription {
    // The wrapper is distinct even if two subscribers pass the same function.
    const own = (news: News): void => listener(news);
    this.#all.add(own);
    return { cancel: () => this.#all.delete(own) };
  }

  notify(news: News): void {
    for (const listener of this.#all) listener(news);
  }
}
