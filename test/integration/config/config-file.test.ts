import { readFileSync } from 'node:fs';
import { test } from '../../support/test.js';
import { formatLinkPolicy } from '../../../src/domain/link-policy.js';
import { parseConfigDocument } from '../../../src/json/config-document.js';
import { linkPoliciesOf, loadSettings, type Settings } from '../../../src/config/settings.js';
import { SettingsError } from '../../../src/config/settings-error.js';
import { aPolicy } from '../../support/link-rules.js';
import { projectFile } from '../../support/project.js';

function load(file: string): Settings {
  return loadSettings({ flags: { config: 'strata.yaml' }, environment: {}, readFile: () => file });
}

function problemsOf(file: string): readonly string[] {
  try {
    load(file);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}

const worked = `
parent:
  urls: [https://cache-root.example:6443]
  certFile: eu-1.crt
  keyFile: eu-1.key
  forward:            # up: only what the world may bind to
    - types: [apiexports.apis.kcp.io]
      annotations: {example.io/visibility: public}
    - types: [apiresourceschemas.apis.kcp.io, workspacetypes.tenancy.kcp.io, shards.core.kcp.io]
  follow:             # down: everything public, and this tenant's own
    - annotations: {example.io/visibility: public}
    - pathPrefix: root:tenant-a
children:
  eu-1: {accept: {shards: [amber, birch]}, offer: [{types: ['*']}]}
  '*':
    offer: {types: [shards.core.kcp.io]}
`;

test('the file says what each link allows to pass', (t) => {
  const settings = load(worked);

  const publicOnly = { annotations: { 'example.io/visibility': 'public' } };
  const open = ['apiresourceschemas.apis.kcp.io', 'workspacetypes.tenancy.kcp.io', 'shards.core.kcp.io'];
  t.deepEqual(settings.parentForward, aPolicy({ types: ['apiexports.apis.kcp.io'], ...publicOnly }, { types: open }));
  t.deepEqual(settings.parentFollow, aPolicy(publicOnly, { pathPrefix: 'root:tenant-a' }));
  t.deepEqual(
    settings.children,
    new Map([
      ['eu-1', { accept: aPolicy({ shards: ['amber', 'birch'] }), offer: aPolicy({ types: ['*'] }) }],
      ['*', { accept: [], offer: aPolicy({ types: ['shards.core.kcp.io'] }) }],
    ]),
  );
});

test('the examples in the documentation are valid', (t) => {
  const exampleOf = (page: string): string => /^```yaml$([^]*?)^```$/m.exec(readFileSync(projectFile(page), 'utf8'))?.[1] ?? '';

  const [short, long] = [load(exampleOf('README.md')), load(exampleOf('docs/policies.md'))];

  t.deepEqual([short.parentForward.length, short.parentFollow.length], [1, 1]);
  t.is(long.parentForward.length, 2);
  t.deepEqual([...long.children.keys()], ['eu-1', '*']);
});

test('without policies nothing passes any link', (t) => {
  const nothing = { forward: [], follow: [], children: new Map() };

  t.deepEqual(linkPoliciesOf(loadSettings({ flags: {}, environment: {}, readFile: () => '' })), nothing);
  for (const file of ['', 'parent:\n', 'parent: {forward: , follow: []}\nchildren:\n']) t.deepEqual(linkPoliciesOf(load(file)), nothing);
  t.deepEqual(load('children: {eu: }').children, new Map([['eu', { accept: [], offer: [] }]]));
});

test('all mistakes in a policy are reported at once, with line and place', (t) => {
  const file = [
    'parent:',
    '  forward:',
    '    - types: [secrets]',
    '    - types:',
    '        - secrets',
    '        - Bad_Type',
    '      shard: [amber]',
    '    - {}',
    '  folow: {types: [secrets]}',
    'children:',
    '  eu-1:',
    '    acept: {types: [secrets]}',
    '    offer: {labels: "a in"}',
    '  Bad: {}',
    '  us-1: [secrets]',
    '',
  ].join('\n');

  t.deepEqual(
    problemsOf(file).map((problem) => problem.replace(/: (must be a type such as|is not a label selector).*/, ': $1')),
    [
      'strata.yaml line 9: unknown key parent.folow; did you mean parent.follow?',
      'strata.yaml line 7: parent.forward[1].shard: unknown key "shard"; a rule may name types, shards, clusters, pathPrefix, labels, annotations',
      'strata.yaml line 6: parent.forward[1].types[1]: "Bad_Type": must be a type such as',
      "strata.yaml line 8: parent.forward[2]: an empty rule is a mistake; types: ['*'] lets everything through",
      'strata.yaml line 12: children.eu-1.acept: unknown key acept; did you mean accept?',
      'strata.yaml line 13: children.eu-1.offer.labels: is not a label selector',
      'strata.yaml line 14: children.Bad: "Bad" is not the name of a cache',
      'strata.yaml line 15: children.us-1: must be a mapping of accept and offer to rules',
    ],
  );
});

test('a section that is not a mapping is reported once', (t) => {
  t.deepEqual(problemsOf('children: [eu]\n'), ['strata.yaml line 1: children: must be a mapping of names to policies']);
  t.deepEqual(problemsOf('parent: x\n'), ['strata.yaml line 1: parent must be a mapping of keys to values']);
  t.deepEqual(problemsOf('childen: {}\n'), ['strata.yaml line 1: unknown key childen; did you mean children?']);
});

test('a rule that a YAML alias repeats counts twice, and its mistakes have a line', (t) => {
  const file = 'parent:\n  forward: &all\n    - types: [secrets]\n  follow: *all\n';
  const mistaken = 'parent:\n  forward: &all\n    - types: [Bad]\n  follow: *all\n';

  t.is(formatLinkPolicy(load(file).parentFollow), formatLinkPolicy(aPolicy({ types: ['secrets'] })));
  t.deepEqual(
    problemsOf(mistaken).map((problem) => problem.split(': ')[0]),
    ['strata.yaml line 3', 'strata.yaml line 3'],
  );
});

test('a place in a file has the line of its key or list member, or of the nearest one', (t) => {
  const { lineOf } = parseConfigDocument('a:\n  - b\n  - c:\n      d: 1\n1: e\n');

  t.deepEqual(
    [[], ['a'], ['a', 0], ['a', 1], ['a', 1, 'c'], ['a', 1, 'c', 'd'], ['1'], ['a', 1, 'c', 'x'], ['a', 7], ['a', 0, 'x'], ['x']].map(
      lineOf,
    ),
    [1, 1, 2, 3, 3, 4, 5, 3, 1, 2, 1],
  );
});
