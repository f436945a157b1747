/**
 * Reads blocks of YAML from docs/, so that tests use exactly what the pages ask operators to apply.
 */
import { readFileSync } from 'node:fs';
import { parseDocument } from 'yaml';
import { projectFile } from './project.js';

/** The block of the page that contains this text. Throws unless there is exactly one. */
export function documentedYaml<Shape>(page: string, text: string): Shape {
  const blocks = [...readFileSync(projectFile('docs', page), 'utf8').matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(
    ([, block = '']) => block,
  );
  const [found, ...more] = blocks.filter((block) => block.includes(text));
  if (found === undefined || more.length > 0)
    throw new Error(`docs/${page} has ${found === undefined ? 'no block' : 'several'} with ${text}`);
  const document = parseDocument(found);
  if (document.errors.length > 0) throw new Error(`docs/${page}: ${document.errors[0]!.message}`);
  return document.toJS() as Shape;
}
