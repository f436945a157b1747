import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import {
  linkPolicyBounds,
  formatLinkPolicy,
  parseLinkPolicy,
  parseLinkPolicyText,
  type LinkPolicy,
} from '../../../src/domain/link-policy.js';
import { acceptedFromChild, policiesOfChild, shardsOfOthers } from '../../../src/domain/link-policies.js';
import { frameBounds } from '../../../src/frames/frame-bounds.js';
import { aPolicy, type WrittenRule } from '../../support/link-rules.js';

function problemsOf(value: unknown): readonly string[] {
  const policy = parseLinkPolicy(value);
  return policy.kind === 'parsed' ? [] : policy.problems.map(({ path, message }) => `${path.join('.')}: ${message}`);
}

function textProblem(text: string): string {
  const policy = parseLinkPolicyText(text);
  return policy.kind === 'parsed' ? '' : policy.problems[0].message;
}

function readBack(policy: LinkPolicy): LinkPolicy {
  const parsed = parseLinkPolicyText(formatLinkPolicy(policy));
  if (parsed.kind === 'wrong') throw new Error(parsed.problems[0].message);
  return parsed.policy;
}

test('one rule, a list of one rule and an empty list are policies', (t) => {
  const rule = { types: ['secrets'] };

  t.deepEqual(parseLinkPolicy(rule), parseLinkPolicy([rule]));
  for (const nothing of [undefined, null, []]) t.deepEqual(parseLinkPolicy(nothing), { kind: 'parsed', policy: [] });
});

test('a rule names a type by group and resource, and by identity if only one identity is meant', (t) => {
  const [rule] = aPolicy({
    types: ['instances.machines.svm.io:a1B', 'secrets', 'apiexports.apis.kcp.io', 'configmaps.core', 'secrets'],
  });

  t.deepEqual(rule?.types, [
    { group: '', resource: 'configmaps', identity: undefined },
    { group: '', resource: 'secrets', identity: undefined },
    { group: 'apis.kcp.io', resource: 'apiexports', identity: undefined },
    { group: 'machines.svm.io', resource: 'instances', identity: 'a1B' },
  ]);
  t.is(aPolicy({ types: ['*'] })[0]?.types, undefined);
  t.deepEqual(problemsOf({ types: ['secrets', '*'] }), ["types: '*' must be the only member"]);
});

test('labels are a selector, or a mapping of equal values', (t) => {
  t.deepEqual(aPolicy({ labels: 'tier=gold, zone' }), aPolicy({ labels: 'zone,tier in (gold),zone' }));
  t.deepEqual(aPolicy({ labels: { tier: 'gold', zone: '' } }), aPolicy({ labels: 'zone=,tier=gold' }));
});

test('every fault of a rule is reported with the path of its key, all at once', (t) => {
  t.deepEqual(
    problemsOf([{ types: ['Bad Type', 7] }, { shards: ['Bad Shard/'], clusters: ['root:org'], pathPrefix: 'system:admin' }]).map(
      (problem) => problem.slice(0, problem.indexOf(':')),
    ),
    ['0.types.0', '0.types.1', '1.shards.0', '1.clusters.0', '1.pathPrefix'],
  );
  t.deepEqual(problemsOf({ type: ['secrets'] }), [
    'type: unknown key "type"; a rule may name types, shards, clusters, pathPrefix, labels, annotations',
  ]);
  t.deepEqual(problemsOf({ labels: { tier: 1, '-bad': 'x' } }).length, 2);
  t.deepEqual(problemsOf({ labels: 'a in' }).length, 1);
  t.deepEqual(problemsOf({ annotations: { 'example.io/a': true } }), [
    'annotations.example.io/a: "example.io/a": must be a string, in quotes if it looks like a number',
  ]);
});

test('an empty rule and an empty name are refused, because they would let everything through', (t) => {
  t.deepEqual(problemsOf([{}]), ["0: an empty rule is a mistake; types: ['*'] lets everything through"]);
  for (const rule of [
    { types: [] },
    { shards: [] },
    { clusters: [] },
    { pathPrefix: '' },
    { labels: '' },
    { labels: {} },
    { annotations: {} },
  ])
    t.is(problemsOf(rule).length, 1, JSON.stringify(rule));
  for (const rule of [{ types: null }, { labels: null }, { pathPrefix: null }, { annotations: null }, { shards: undefined }])
    t.is(problemsOf(rule).length, 1, JSON.stringify(rule));
});

test('anything but a rule is refused', (t) => {
  for (const value of ['*', 1, true, ['types'], [[]], [null]]) t.is(problemsOf(value).length, 1, JSON.stringify(value));
});

test('rules, lists, labels and the whole policy are bounded', (t) => {
  const { rulesMax, listMax, termsMax, policyCharactersMax } = linkPolicyBounds;
  const names = Array.from({ length: listMax + 1 }, (_, i) => `shard-${i}`);
  const terms = Object.fromEntries(names.slice(0, termsMax + 1).map((name) => [name, 'x']));
  const long = { clusters: names.slice(1).map((name) => name.padEnd(50, '0')) };

  t.regex(problemsOf(Array.from({ length: rulesMax + 1 }, () => ({ types: ['*'] })))[0]!, /256/);
  t.deepEqual(problemsOf({ shards: names.slice(1) }), []);
  t.regex(problemsOf({ shards: names })[0]!, /1000/);
  t.regex(problemsOf({ labels: terms })[0]!, /64/);
  t.regex(problemsOf({ labels: `a in (${names.join()})` })[0]!, /1000 values/);
  t.regex(problemsOf({ annotations: terms })[0]!, /64/);
  t.regex(problemsOf([long, { ...long, shards: ['amber'] }])[0]!, /65536/);
  t.regex(textProblem(`[${' '.repeat(policyCharactersMax)}]`), /65536/);
  t.is(policyCharactersMax, frameBounds.policyCharactersMax);
});

test('a text that is not JSON, or nested too deep, is refused', (t) => {
  t.is(textProblem('{'), 'is not JSON');
  t.not(textProblem('['.repeat(100_000) + ']'.repeat(100_000)), '');
  t.not(textProblem('{"__proto__":{"types":["*"]}}'), '');
  t.not(textProblem('[{"annotations":{"__proto__":"x"}}]'), '');
});

test('the number of reported problems is small enough for a log', (t) => {
  const policy = parseLinkPolicy(Array.from({ length: 200 }, () => 7));

  t.is(policy.kind === 'wrong' ? policy.problems.length : 0, 100);
});

function textsOf(policy: LinkPolicy): readonly string[] {
  return [...new Set(policy.map((rule) => formatLinkPolicy([rule])))].toSorted();
}

const rules = fc
  .record(
    {
      types: fc.oneof(
        fc.constant(['*']),
        fc.array(fc.constantFrom('secrets', 'apiexports.apis.kcp.io', 'a.b.c', 'a.b.c:X1'), { minLength: 1 }),
      ),
      shards: fc.array(fc.constantFrom('amber', 'birch', 'cedar:1'), { minLength: 1 }),
      clusters: fc.array(fc.constantFrom('root', 'acme', 'system:shard'), { minLength: 1 }),
      pathPrefix: fc.constantFrom('root', 'root:a', 'root:a:b'),
      labels: fc.oneof(
        fc.constantFrom('a=b', '!a', 'a,b', 'a notin (x,),b>3', 'c<07,c', 'in,notin in (in)', 'x/y==z'),
        fc.dictionary(fc.constantFrom('a', 'b', 'x/y'), fc.constantFrom('', 'v'), { minKeys: 1 }),
      ),
      annotations: fc.dictionary(fc.constantFrom('a', 'x.io/B'), fc.constantFrom('*', '', '"quoted"\n', '\ud800', '__proto__'), {
        minKeys: 1,
      }),
    },
    { requiredKeys: [] },
  )
  .filter((rule) => Object.keys(rule).length > 0);

test('a formatted policy parses to the same policy, and to the same text', (t) => {
  fc.assert(
    fc.property(fc.array(rules, { maxLength: 4 }), (written) => {
      const policy = aPolicy(...written);
      const text = formatLinkPolicy(policy);

      t.is(formatLinkPolicy(readBack(policy)), text);
      t.is(formatLinkPolicy(aPolicy(...written.toReversed(), ...written)), text);
      t.deepEqual(textsOf(readBack(policy)), textsOf(policy));
    }),
    { numRuns: rounds(300) },
  );
});

test('any text is parsed or refused, and a parsed policy can be formatted', (t) => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.json(),
        fc.string(),
        fc.jsonValue().map((rule) => JSON.stringify([{ labels: rule, types: rule }])),
      ),
      (text) => {
        const policy = parseLinkPolicyText(text);
        t.is(
          policy.kind === 'parsed' ? formatLinkPolicy(readBack(policy.policy)) : '',
          policy.kind === 'parsed' ? formatLinkPolicy(policy.policy) : '',
        );
      },
    ),
    { numRuns: rounds(300) },
  );
});

test('a star stands for every shard and must be alone, and a rule with it differs from a rule without shards', (t) => {
  const named = aPolicy({ shards: ['*'] });

  t.is(formatLinkPolicy(named), '[{"types":["*"],"shards":["*"]}]');
  t.deepEqual(readBack(named), named);
  t.not(formatLinkPolicy(named), formatLinkPolicy(aPolicy({ types: ['*'] })));
  t.deepEqual(problemsOf({ shards: ['*', 'amber'] }), ["shards: '*' must be the only member"]);
});

test('an accept rule without shards covers the shards that the other rules name, and none if they name none', (t) => {
  const gold = { labels: 'tier=gold' };
  const accepted = (...rules: readonly WrittenRule[]): string => formatLinkPolicy(acceptedFromChild(aPolicy(...rules)));

  t.is(accepted(gold), '[]');
  t.is(accepted(gold, { types: ['*'] }), '[]');
  t.is(accepted(gold, { shards: ['amber'] }), formatLinkPolicy(aPolicy({ ...gold, shards: ['amber'] }, { shards: ['amber'] })));
  t.is(
    accepted(gold, { shards: ['*'], types: ['secrets'] }),
    formatLinkPolicy(aPolicy({ ...gold, shards: ['*'] }, { shards: ['*'], types: ['secrets'] })),
  );
});

test('a child that may claim every shard may not claim those of another child’s entry, unless its own entry names them too', (t) => {
  const entry = (...rules: readonly WrittenRule[]) => ({ accept: aPolicy(...rules), offer: [] });
  const children = new Map([
    ['eu', entry({ shards: ['amber', 'birch'] })],
    ['us', entry({ shards: ['*'], labels: 'tier' }, { shards: ['birch'] })],
    ['*', entry({ shards: ['*'] })],
  ]);
  const ofOthers = (name: string): readonly string[] => [...shardsOfOthers({ children }, name)];

  t.deepEqual(ofOthers('us'), ['amber']);
  t.deepEqual(ofOthers('anybody'), ['amber', 'birch']);
  t.deepEqual(ofOthers('eu'), []);
});

test('a child has the policies of its own entry, else of the entry for all others, else none', (t) => {
  const everything = { accept: aPolicy({ types: ['*'] }), offer: aPolicy({ types: ['*'] }) };
  const own = { accept: [], offer: aPolicy({ shards: ['amber'] }) };

  t.is(
    policiesOfChild(
      {
        children: new Map([
          ['eu', own],
          ['*', everything],
        ]),
      },
      'eu',
    ),
    own,
  );
  t.is(
    policiesOfChild(
      {
        children: new Map([
          ['eu', own],
          ['*', everything],
        ]),
      },
      'us',
    ),
    everything,
  );
  t.deepEqual(policiesOfChild({ children: new Map([['eu', own]]) }, 'us'), { accept: [], offer: [] });
});
