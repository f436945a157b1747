import { join } from 'node:path';
import { findProjectRoot } from '../house/sources.js';

/** AVA's command, for Node. */
export const avaProgram = join(findProjectRoot(), 'node_modules', 'ava', 'entrypoints', 'cli.mjs');
