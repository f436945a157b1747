import { join } from 'node:path';
import { findProjectRoot } from '../house/sources.js';

/** The file of AVA's command, for Node to run. */
export const avaProgram = join(findProjectRoot(), 'node_modules', 'ava', 'entrypoints', 'cli.mjs');
