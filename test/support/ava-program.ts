import { join } from 'node:path';
import { findProjectRoot } from '../house/sources.js';

export const avaProgram = join(findProjectRoot(), 'node_modules', 'ava', 'entrypoints', 'cli.mjs');
