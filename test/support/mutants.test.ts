import { parse } from 'acorn';
import { test } from './test.js';
import { mutated, mutationsOf } from './mutants/mutations.js';
import { mutantsOf, planted } from './mutants/mutants.js';

const module = `import { a } from './a.js';
export async function first(list, bound) {
  if (list.length < bound && !list.isFull) {
    list.push(a);
    return true;
  }
  for (const each of list) {
    if (each === 7) continue;
    await each.done();
  }
  return list.length + 1;
}
`;

test('each operator, condition, constant, call and return has a mutation', (t) => {
  const wrong = mutationsOf(module).map(({ from, to, after }) => `${module.slice(from, to)} → ${after}`);

  t.deepEqual(wrong, [
    'list.length < bound && !list.isFull → !(list.length < bound && !list.isFull)',
    '< → <=',
    '&& → ||',
    '! → ',
    'list.push(a); → ;',
    'return true; → return;',
    'true → false',
    'each === 7 → !(each === 7)',
    '=== → !==',
    '7 → 8',
    'continue; → ;',
    'await each.done(); → ;',
    'await each.done(); → void each.done();',
    'return list.length + 1; → return;',
    '+ → -',
    '1 → 2',
  ]);
});

test('a mutated module still parses, and differs from the original', (t) => {
  for (const mutation of mutationsOf(module)) {
    const wrong = mutated(module, mutation);
    t.notThrows(() => parse(wrong, { ecmaVersion: 'latest', sourceType: 'module' }));
    t.not(wrong, module);
  }
});

test('a mutant is planted by the text of its line, wherever that line is', (t) => {
  const moved = `// A line more.\n${module}`;
  const mutants = mutantsOf('src/first.js', [module, moved]);

  t.is(mutants.length, mutationsOf(module).length);
  for (const mutant of mutants) t.is(planted(moved, mutant), `// A line more.\n${planted(module, mutant)}`);
});

test('a line that a build has twice gets no mutant', (t) => {
  const twice = module.replace('    list.push(a);\n', '    list.push(a);\n    list.push(a);\n');

  const lines = mutantsOf('src/first.js', [module, twice]).map(({ line }) => line.trim());

  t.false(lines.includes('list.push(a);'));
  t.is(lines.length, mutationsOf(module).length - 1);
  t.is(planted(twice, { file: 'src/first.js', line: '    list.push(a);', column: 4, before: 'list.push(a);', after: ';' }), undefined);
});
