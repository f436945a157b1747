/** The peers of a store that one server has for itself. */
import type { Peers } from '../domain/store-port.js';

export const alone: Peers = Object.freeze({
  leadsSinceMs: 0,
  others: new Map(),
  isAlone: true,
  tell: () => {},
  follow: () => ({ cancel: () => {} }),
});
