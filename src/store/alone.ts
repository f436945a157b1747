/** `Peers` of a store that has only one server: it leads, and there are no others. */
import type { Peers } from '../domain/store-port.js';

export const alone: Peers = Object.freeze({
  leadsSinceMs: 0,
  others: new Map(),
  isAlone: true,
  report: () => {},
  follow: () => ({ cancel: () => {} }),
});
