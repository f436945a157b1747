/** The blocks of YAML in the pages of docs/, so that what they tell operators to apply is what tests use. */
import { readFileSync } from 'node:fs';
import { parseDocument } from 'yaml';
import { projectFile } from './project.js';

/** The block of the page that has this text in it. Throws where there is none, or more than one. */
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
