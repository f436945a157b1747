/**
 * What a file of types may say. Every error must name its place in the file. The tests find an
 * entry that is skipped or half applied, and a text that ends the process.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kcpTypes } from '../../../src/domain/catalogue/catalogue-kcp.js';
import { checkTypes, TypesFile } from '../../../src/config/files/types-file.js';
import { test } from '../../support/test.js';

const entry = {
  group: 'example.com',
  plural: 'widgets',
  kind: 'Widget',
  scope: 'Namespaced',
  replicated: 'always',
  versions: [{ name: 'v1' }],
};
const other = { ...entry, plural: 'gadgets', kind: 'Gadget' };
const column = { name: 'Export', type: 'string', jsonPath: '.spec.export.name' };

test('an empty file changes nothing', (t) => {
  for (const given of [undefined, null, {}, { types: [] }]) t.deepEqual(checkTypes(given), { value: kcpTypes, problems: [] });
});

test('an entry adds a type, with names that follow from its kind', (t) => {
  const { value, problems } = checkTypes({ types: [entry] });
  t.deepEqual(problems, []);
  t.is(value.length, kcpTypes.length + 1);
  t.like(value.at(-1), {
    group: 'example.com',
    resource: 'widgets',
    identity: '',
    kind: 'Widget',
    listKind: 'WidgetList',
    singular: 'widget',
    namespaced: true,
    storageVersion: 'v1',
    replicated: 'always',
  });
});

test('an entry for a built-in type changes the members that it names and leaves the rest', (t) => {
  const versions = [{ name: 'v1alpha1', additionalPrinterColumns: [column] }];
  const { value, problems } = checkTypes({ types: [{ group: 'core.kcp.io', plural: 'shards', shortNames: ['sh'], versions }] });
  t.deepEqual(problems, []);
  const shards = kcpTypes.find(({ resource }) => resource === 'shards');
  const changed = { ...shards, shortNames: ['sh'], versions: [{ name: 'v1alpha1', columns: [column] }] };
  t.deepEqual(
    value,
    kcpTypes.map((type) => (type === shards ? changed : type)),
  );
});

const wrong: readonly (readonly [string, unknown, RegExp])[] = [
  ['a list at the top', [], /^: must be a mapping/],
  ['another key', { type: [] }, /^type: unknown key type.*types/],
  ['no list of types', { types: {} }, /^types: must be a list/],
  ['an entry that is no mapping', { types: ['widgets'] }, /^types\.0: must be a mapping/],
  ['an entry of nothing', { types: [null] }, /^types\.0: must be a mapping/],
  ['no kind', { types: [{ ...entry, kind: undefined }] }, /^types\.0: kind is missing/],
  ['a kind that is null', { types: [{ ...entry, kind: null }] }, /^types\.0\.kind: must match/],
  ['no group', { types: [{ ...entry, group: undefined }] }, /^types\.0\.group: must be a string/],
  ['the group by its other name', { types: [{ ...entry, group: 'core' }] }, /^types\.0\.group: the core group is ''/],
  ['the group of path entries', { types: [{ ...entry, group: 'paths.strata' }] }, /^types\.0\.group: the group is Strata’s own/],
  ['a group with upper case', { types: [{ ...entry, group: 'Example.com' }] }, /^types\.0\.group: a lowercase/],
  ['a plural with a slash', { types: [{ ...entry, plural: 'a/b' }] }, /^types\.0\.plural: a lowercase/],
  ['a type twice', { types: [entry, entry] }, /^types\.1\.plural: the file has widgets\.example\.com twice/],
  ['another scope', { types: [{ ...entry, scope: 'cluster' }] }, /^types\.0\.scope: must be one of Cluster, Namespaced/],
  [
    'another way to replicate',
    { types: [{ ...entry, replicated: true }] },
    /^types\.0\.replicated: must be one of always, annotated, never/,
  ],
  ['no version', { types: [{ ...entry, versions: [] }] }, /^types\.0\.versions: must name a version/],
  ['a version twice', { types: [{ ...entry, versions: [{ name: 'v1' }, { name: 'v1' }] }] }, /^types\.0\.versions: names a version twice/],
  ['versions of nothing', { types: [{ ...entry, versions: null }] }, /^types\.0\.versions: must be a list/],
  [
    'a path that is none',
    { types: [{ ...entry, versions: [{ name: 'v1', additionalPrinterColumns: [{ ...column, jsonPath: '.a[' }] }] }] },
    /^types\.0\.versions\.0\.additionalPrinterColumns\.0\.jsonPath: is not a JSONPath/,
  ],
  [
    'a column without a path',
    { types: [{ ...entry, versions: [{ name: 'v1', additionalPrinterColumns: [{ name: 'A', type: 'string' }] }] }] },
    /^types\.0\.versions\.0\.additionalPrinterColumns\.0\.jsonPath: must be a string/,
  ],
  [
    'another scope of a built-in type',
    { types: [{ group: 'core.kcp.io', plural: 'shards', scope: 'Namespaced' }] },
    /^types\.0: the built-in type is a Shard/,
  ],
  [
    'a change of what declares types',
    { types: [{ group: 'cache.kcp.io', plural: 'clustercachedresources', replicated: 'never' }] },
    /^types\.0\.plural: this type is built in and cannot be changed/,
  ],
  [
    'too many short names',
    { types: [{ ...entry, shortNames: Array.from({ length: 21 }, () => 'w') }] },
    /^types\.0\.shortNames: has more than 20/,
  ],
  [
    'a short name of a built-in type of the group',
    { types: [{ ...entry, group: 'apiextensions.k8s.io', shortNames: ['w', 'crd'] }] },
    /^types\.0\.shortNames: crd is already a name of customresourcedefinitions\.apiextensions\.k8s\.io/,
  ],
  [
    'a short name that is the plural of another entry',
    { types: [entry, { ...other, shortNames: ['widgets'] }] },
    /^types\.1\.shortNames: widgets is already a name of widgets\.example\.com/,
  ],
  [
    'a plural that is the singular of a built-in type',
    { types: [{ ...entry, group: 'core.kcp.io', plural: 'shard' }] },
    /^types\.0\.plural: shard is already a name of shards\.core\.kcp\.io/,
  ],
  [
    'a singular that is the short name of another entry',
    {
      types: [
        { ...entry, shortNames: ['gadget'] },
        { ...other, singular: 'gadget' },
      ],
    },
    /^types\.1\.singular: gadget is already a name of widgets\.example\.com/,
  ],
  [
    'the kind of another entry',
    { types: [entry, { ...other, kind: 'Widget', singular: 'gadget' }] },
    /^types\.1\.kind: Widget is already a name of widgets\.example\.com/,
  ],
  [
    'a kind that is the kind of another one’s lists',
    { types: [entry, { ...other, kind: 'WidgetList' }] },
    /^types\.1\.kind: WidgetList is already a name of widgets\.example\.com/,
  ],
  [
    'a built-in type that gets the short name of another one',
    { types: [{ group: 'core.kcp.io', plural: 'shards', shortNames: ['logicalcluster'] }] },
    /^types\.0\.shortNames: logicalcluster is already a name of logicalclusters\.core\.kcp\.io/,
  ],
];

test('names are unique within a group: other groups may have the same names, and a type may repeat its own', (t) => {
  const same = { ...entry, group: 'example.org', shortNames: ['crd', 'widget', 'widgets'] };
  t.deepEqual(checkTypes({ types: [entry, same, { ...other, kind: 'gadgets', singular: 'gadgets' }] }).problems, []);
});

for (const [name, given, expected] of wrong)
  test(`a file of types is refused with the place of the error: ${name}`, (t) => {
    const told = checkTypes(given).problems.map(({ path, message }) => `${path.join('.')}: ${message}`);
    t.true(
      told.some((each) => expected.test(each)),
      told.join('\n'),
    );
  });

for (const [name, text, message] of [
  ['one list in another, 200,000 deep', `types: ${'['.repeat(200_000)}`, /types\.yaml: nests too deep$/],
  ['mappings 201 deep', Array.from({ length: 201 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'), /types\.yaml: nests too deep$/],
  ['more than a megabyte', `# ${'a'.repeat(1024 * 1024)}`, /types\.yaml: has more than 1048576 characters$/],
  [
    'a name of another type',
    'types:\n- group: core.kcp.io\n  plural: shards\n  shortNames: [logicalcluster]',
    /types\.yaml line 4: types\.0\.shortNames: logicalcluster is already a name of logicalclusters\.core\.kcp\.io$/,
  ],
] as const)
  test(`a changed file of types is refused and the former types stay: ${name}`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'strata-types-'));
    t.teardown(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, 'types.yaml');
    await writeFile(file, 'types: []');
    const types = new TypesFile(file);

    await writeFile(file, text);

    t.throws(() => types.polled(() => t.fail())?.take(), { name: 'SettingsError', message });
    t.deepEqual(types.types, kcpTypes);
  });

test('types stay while the file is empty, because somebody may be writing it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'strata-types-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'types.yaml');
  await writeFile(file, JSON.stringify({ types: [entry] }));
  const types = new TypesFile(file);
  const polled = types.polled(() => {});

  await writeFile(file, '');
  t.throws(() => polled?.take(), { name: 'SettingsError', message: /types\.yaml: is empty now/ });
  t.is(types.types.length, kcpTypes.length + 1);
  await writeFile(file, '{}');
  t.true(polled?.take());
  t.deepEqual(types.types, kcpTypes);
});
