import type { Paths } from '../../src/domain/ports.js';

/** The paths of a server without path entries. */
export const noPaths: Paths = { resolve: async () => ({ kind: 'unknown' }), answer: async () => ({ kind: 'unknown' }) };
