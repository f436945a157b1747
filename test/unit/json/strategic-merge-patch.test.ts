import { fastestMs } from '../../support/fastest.js';
import { rounds } from '../../support/sizes.js';
import { test } from '../../support/test.js';
import fc from 'fast-check';
import { parseJson } from '../../../src/json/json-parser.js';
import { formatJson } from '../../../src/json/json-tree.js';
import { mustParse } from '../../../src/domain/parsed.js';
import { applyStrategicMergePatch, supportsStrategicMergePatch } from '../../../src/json/strategic-merge-patch.js';

const rbac = 'rbac.authorization.k8s.io';
const admission = 'admissionregistration.k8s.io';

function patched(target: string, patch: string, group = admission, resource = ''): string {
  const result = applyStrategicMergePatch(mustParse(parseJson(target)), mustParse(parseJson(patch)), { group, resource });
  return result.kind === 'parsed' ? formatJson(result.value) : `${result.refusal.reason}: ${result.refusal.message}`;
}

test('only the groups with a schema accept strategic merge patches', (t) => {
  t.true(supportsStrategicMergePatch(rbac));
  t.true(supportsStrategicMergePatch(admission));
  t.false(supportsStrategicMergePatch('apis.kcp.io'));
});

test('the variables of a ValidatingAdmissionPolicy are merged by name, and those of a MutatingAdmissionPolicy replaced', (t) => {
  const [target, patch] = [
    '{"spec":{"matchConditions":[{"name":"m"}],"variables":[{"name":"a"},{"name":"b"}]}}',
    '{"spec":{"matchConditions":[{"name":"n"}],"variables":[{"name":"a","expression":"1"}]}}',
  ];
  const conditions = '"matchConditions":[{"name":"n"},{"name":"m"}]';

  t.is(
    patched(target, patch, admission, 'validatingadmissionpolicies'),
    `{"spec":{${conditions},"variables":[{"name":"a","expression":"1"},{"name":"b"}]}}`,
  );
  t.is(
    patched(target, patch, admission, 'mutatingadmissionpolicies'),
    `{"spec":{${conditions},"variables":[{"name":"a","expression":"1"}]}}`,
  );
});

test('objects merge, null removes, and untouched members keep their text', (t) => {
  t.is(
    patched(
      '{"metadata":{"labels":{"a":"1","b":"2"}},"n":9007199254740993}',
      '{"metadata":{"labels":{"a":null,"c":"3"}},"new":{"x":null,"y":1}}',
    ),
    '{"metadata":{"labels":{"b":"2","c":"3"}},"n":9007199254740993,"new":{"y":1}}',
  );
});

test("RBAC's rules and subjects, a policy's validations and managedFields are replaced whole", (t) => {
  t.is(
    patched('{"rules":[{"verbs":["get"]},{"verbs":["list"]}]}', '{"rules":[{"verbs":["watch"]}]}', rbac),
    '{"rules":[{"verbs":["watch"]}]}',
  );
  t.is(patched('{"subjects":[{"name":"a"}]}', '{"subjects":[{"name":"b"}]}', rbac), '{"subjects":[{"name":"b"}]}');
  t.is(
    patched('{"spec":{"validations":[{"expression":"a"}]}}', '{"spec":{"validations":[{"expression":"b"}]}}'),
    '{"spec":{"validations":[{"expression":"b"}]}}',
  );
  t.is(
    patched('{"metadata":{"managedFields":[{"manager":"a"}]}}', '{"metadata":{"managedFields":[{"manager":"b"}]}}'),
    '{"metadata":{"managedFields":[{"manager":"b"}]}}',
  );
});

test('lists with a merge key merge item by item', (t) => {
  const cases: [string, string, string][] = [
    [
      '{"webhooks":[{"name":"a","x":1.0},{"name":"b"}]}',
      '{"webhooks":[{"name":"b","y":2}]}',
      '{"webhooks":[{"name":"a","x":1.0},{"name":"b","y":2}]}',
    ],
    ['{"webhooks":[{"name":"a"}]}', '{"webhooks":[{"name":"b","z":null}]}', '{"webhooks":[{"name":"b"},{"name":"a"}]}'],
    [
      '{"webhooks":[{"name":"a","matchConditions":[{"name":"m","expression":"1"}],"rules":[1,2]}]}',
      '{"webhooks":[{"name":"a","matchConditions":[{"name":"m","expression":"2"},{"name":"n"}],"rules":[3]}]}',
      '{"webhooks":[{"name":"a","matchConditions":[{"name":"m","expression":"2"},{"name":"n"}],"rules":[3]}]}',
    ],
    [
      '{"spec":{"variables":[{"name":"a","expression":"1"}]}}',
      '{"spec":{"variables":[{"name":"a","expression":"2"}]}}',
      '{"spec":{"variables":[{"name":"a","expression":"2"}]}}',
    ],
    [
      '{"metadata":{"ownerReferences":[{"uid":"1","name":"x"}]}}',
      '{"metadata":{"ownerReferences":[{"uid":"1","controller":true}]}}',
      '{"metadata":{"ownerReferences":[{"uid":"1","name":"x","controller":true}]}}',
    ],
    ['{"metadata":{"finalizers":["a","b"]}}', '{"metadata":{"finalizers":["b","c"]}}', '{"metadata":{"finalizers":["a","b","c"]}}'],
    ['{"metadata":{}}', '{"metadata":{"finalizers":["b"]}}', '{"metadata":{"finalizers":["b"]}}'],
  ];
  for (const [target, patch, expected] of cases) t.is(patched(target, patch), expected, patch);
});

test('directives are followed and never stored', (t) => {
  const cases: [string, string, string, string][] = [
    ['replace an object', '{"spec":{"a":1,"b":2}}', '{"spec":{"$patch":"replace","c":3,"d":null}}', '{"spec":{"c":3}}'],
    ['delete an object', '{"spec":{"a":1}}', '{"spec":{"$patch":"delete"}}', '{"spec":{}}'],
    ['merge an object', '{"spec":{"a":1}}', '{"spec":{"$patch":"merge","b":2}}', '{"spec":{"a":1,"b":2}}'],
    ['replace what is not there', '{}', '{"spec":{"$patch":"replace","a":1}}', '{"spec":{"a":1}}'],
    ['delete what is not there', '{}', '{"spec":{"$patch":"delete"}}', '{}'],
    [
      'delete an item',
      '{"webhooks":[{"name":"a"},{"name":"b"}]}',
      '{"webhooks":[{"$patch":"delete","name":"a"}]}',
      '{"webhooks":[{"name":"b"}]}',
    ],
    [
      'replace a list',
      '{"webhooks":[{"name":"a"},{"name":"b"}]}',
      '{"webhooks":[{"$patch":"replace"},{"name":"c"}]}',
      '{"webhooks":[{"name":"c"}]}',
    ],
    [
      'delete from a set',
      '{"metadata":{"finalizers":["a","b"]}}',
      '{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}',
      '{"metadata":{"finalizers":["b"]}}',
    ],
    [
      'order a set',
      '{"metadata":{"finalizers":["a","b","c"]}}',
      '{"metadata":{"$setElementOrder/finalizers":["c","d","a"],"finalizers":["d"]}}',
      '{"metadata":{"finalizers":["b","c","d","a"]}}',
    ],
    [
      'order a list',
      '{"webhooks":[{"name":"a"},{"name":"b"}]}',
      '{"$setElementOrder/webhooks":[{"name":"b"},{"name":"a"}],"webhooks":[{"name":"b","x":1}]}',
      '{"webhooks":[{"name":"b","x":1},{"name":"a"}]}',
    ],
    [
      'order in a new object',
      '{}',
      '{"spec":{"$setElementOrder/variables":[{"name":"a"}],"variables":[{"name":"a"}]}}',
      '{"spec":{"variables":[{"name":"a"}]}}',
    ],
    ['retain keys', '{"spec":{"a":1,"b":2}}', '{"spec":{"$retainKeys":["b","c"],"c":3}}', '{"spec":{"b":2,"c":3}}'],
    [
      'in a list that is replaced',
      '{"rules":[1]}',
      '{"rules":[{"$patch":"replace"},{"a":{"$retainKeys":["b"],"b":1}}]}',
      '{"rules":[{"a":{"b":1}}]}',
    ],
  ];
  for (const [title, target, patch, expected] of cases) t.is(patched(target, patch), expected, title);
});

const malformed = [
  '"$patch":"bogus"',
  '"$patch":5',
  '"$patch":null',
  '"$patch":{}',
  '"$retainKeys":5',
  '"$retainKeys":{"b":1}',
  '"$retainKeys":["c"],"d":1',
  '"$deleteFromPrimitiveList/a":5',
  '"$setElementOrder/a":"b"',
];

test('a patch that contradicts itself or the schema is a bad request', (t) => {
  for (const patch of [
    '[]',
    '{"spec":{"$patch":"spam"}}',
    '{"webhooks":[{"x":1}]}',
    '{"webhooks":[1]}',
    '{"webhooks":[{"name":{}}]}',
    '{"webhooks":[{"$patch":"merge","name":"a"}]}',
    '{"metadata":{"$deleteFromPrimitiveList/finalizers":1}}',
    '{"$setElementOrder/webhooks":1}',
    '{"spec":{"$retainKeys":["a"],"b":1}}',
    ...malformed.flatMap((directive) => [
      `{"new":{${directive}}}`,
      `{"new":{"a":{${directive},"b":1}}}`,
      `{"new":[{"a":{${directive}}}]}`,
      `{"spec":{"$patch":"replace","a":{${directive}}}}`,
      `{"spec":{"$patch":"delete","a":{${directive}}}}`,
      `{"metadata":{"labels":{${directive}}}}`,
      `{"metadata":{"managedFields":[{"manager":"m","fieldsV1":{${directive}}}]}}`,
      `{"webhooks":[{"name":"b","clientConfig":{${directive}}}]}`,
      `{"webhooks":[{"$patch":"replace"},{"name":"b","rules":[{"scope":{${directive}}}]}]}`,
    ]),
    ...['"bogus"', '5', 'null', '"merge"', '["delete"]', '"Replace"'].flatMap((directive) => [
      `{"rules":[{"verbs":["d"],"$patch":${directive}}]}`,
      `{"new":[{"$patch":${directive}}]}`,
      `{"webhooks":[{"name":"a","rules":[{"$patch":${directive},"operations":["CREATE"]}]}]}`,
      `{"webhooks":[{"name":"b","rules":[{"$patch":${directive},"operations":["CREATE"]}]}]}`,
      `{"webhooks":[{"name":"b","$patch":${directive}}]}`,
    ]),
    '{"a":'.repeat(300) + '1' + '}'.repeat(300),
  ]) {
    t.regex(patched('{"webhooks":[{"name":"a"}],"spec":{},"metadata":{"finalizers":["a"]}}', patch), /^BadRequest: /, patch.slice(0, 80));
  }
});

test('two long lists merge in time that grows with their length', (t) => {
  const list = (key: string, length: number): string =>
    JSON.stringify({ webhooks: Array.from({ length }, (_, index) => ({ name: `n${index}`, [key]: 1 })) });
  const mergeMs = (length: number): number => {
    const [before, patch] = [list('a', length), list('b', length)];
    return fastestMs(() => void patched(before, patch), 3);
  };

  const [short, long] = [mergeMs(2_500), mergeMs(20_000)];

  // Eight times as long: 64 times as much work if each item were looked for among all.
  t.true(long < 24 * short, `${short} ms, then ${long} ms`);
});

test('junk patches are applied or refused as a bad request, and no directive of a patch is ever stored', (t) => {
  const leaf = fc.oneof(fc.constantFrom('a', 'b', 1, null, 'delete', 'replace'), fc.record({ name: fc.constantFrom('a', 'b') }));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(leaf, fc.array(tie('value'), { maxLength: 3 }), tie('object')),
    object: fc.dictionary(
      fc.constantFrom(
        'webhooks',
        'name',
        'metadata',
        'finalizers',
        '$patch',
        '$retainKeys',
        '$setElementOrder/webhooks',
        'spec',
        'variables',
      ),
      tie('value'),
    ),
  }));
  fc.assert(
    fc.property(value, value, (target, patch) => {
      const once = patched(JSON.stringify(target), JSON.stringify(patch));
      if (/^\w+: /.test(once)) t.regex(once, /^BadRequest: /);
      else t.false(/"\$(?:patch|retainKeys|setElementOrder)[^"]*":/.test(once) && !/"\$/.test(JSON.stringify(target)), once);
    }),
    { numRuns: rounds(1000) },
  );
});
