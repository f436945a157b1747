import { test } from '../support/test.js';
import { findProjectRoot, readSources } from './sources.js';
import { everydayNames } from './words.js';

test('no exported name of src uses an everyday word where the field has a term', (t) => {
  t.deepEqual(everydayNames(readSources(findProjectRoot(), ['src'])), []);
});

test('an everyday word in the name of an export, of a public method or of a file is found', (t) => {
  const cases: [string, string, string][] = [
    ['src/tree/a.ts', 'export async function tellOwner(): void {}', 'tellOwner: use send, report or return'],
    ['src/tree/a.ts', 'export type ClaimHeard = 1;', 'ClaimHeard: use receive'],
    ['src/tree/a.ts', 'export class A {\n  async noteVerb(): Promise<void> {}\n}', 'noteVerb: use record or log'],
    ['src/tree/what-came.ts', '', 'what-came: use arrive or receive'],
  ];
  for (const [path, text, expected] of cases) t.deepEqual(everydayNames([{ path, text }]), [`${path}: ${expected}`]);
});

test('a term, a private name and a method of what the package exports are accepted', (t) => {
  const terms = 'export function lookUpTarget() {\n  note();\n}\nexport class HeldRemovals {\n  take() {}\n}\nexport const isWhole = 1;';
  const others = 'const told = 1;\nexport class A {\n  #hear() {}\n  notebook() {}\n  standby() {}\n}';
  const face = { path: 'src/client.ts', text: `export { B } ${'from'} './tree/b.js';` };

  for (const text of [terms, others]) t.deepEqual(everydayNames([{ path: 'src/watch/hub.ts', text }]), []);
  t.deepEqual(everydayNames([face, { path: 'src/tree/b.ts', text: 'export class B {\n  tell() {}\n}' }]), []);
});
