/** `npm run docs`: writes the generated pages. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generatedPages } from './generated-pages.js';
import { findProjectRoot } from './sources.js';

for (const [path, render] of Object.entries(generatedPages)) writeFileSync(join(findProjectRoot(), path), render());
