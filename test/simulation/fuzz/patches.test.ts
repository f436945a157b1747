/**
 * Compares the patch functions with obvious implementations on plain values. Both give the same
 * result or both refuse, and the target stays unchanged.
 */
import { test } from '../../support/test.js';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { parseJson } from '../../../src/json/json-parser.js';
import { applyJsonPatch, parseJsonPatch } from '../../../src/json/json-patch.js';
import { formatJson, type JsonTree } from '../../../src/json/json-tree.js';
import { applyMergePatch } from '../../../src/json/merge-patch.js';
import { mustParse, type Parsed } from '../../../src/domain/parsed.js';
import { applyStrategicMergePatch } from '../../../src/json/strategic-merge-patch.js';
import { corpus, fuzz, mutated } from './fuzzing.js';
import { patchedPlainly, type PlainOperation } from './plain-json-patch.js';

const tree = (value: unknown): JsonTree => mustParse(parseJson(JSON.stringify(value)));
const plain = (value: JsonTree): unknown => JSON.parse(formatJson(value));
const sizeOf = (input: readonly unknown[]): number => JSON.stringify(input).length;

const name = fc.constantFrom('a', 'b', 'c', '0', '1', '-', 'x/y', '~');
const { value: anyValue } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(null, true, 'x', 1, 2),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(name, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
}));
const pointer = fc
  .array(name, { maxLength: 3 })
  .map((names) => names.map((each) => `/${each.replaceAll('~', '~0').replaceAll('/', '~1')}`).join(''));
const operation: fc.Arbitrary<PlainOperation> = fc.oneof(
  fc.record({ op: fc.constantFrom('add' as const, 'replace' as const, 'test' as const), path: pointer, value: anyValue }),
  fc.record({ op: fc.constant('remove' as const), path: pointer }),
  fc.record({ op: fc.constantFrom('move' as const, 'copy' as const), path: pointer, from: pointer }),
);

test('a JSON patch gives what a plain implementation of RFC 6902 gives, and leaves its target unchanged', (t) => {
  const law = ([target, patch]: readonly [unknown, readonly PlainOperation[]]): void => {
    const before = tree(target);
    const expected = patchedPlainly(target, patch);
    const operations = parseJsonPatch(tree(patch));
    const result = operations.kind === 'refused' ? operations : applyJsonPatch(before, operations.value);
    if ((result.kind === 'parsed') !== (expected !== undefined))
      throw new Error(`one refuses it: ${JSON.stringify(result)} and ${JSON.stringify(expected)}`);
    if (result.kind === 'parsed' && !isDeepStrictEqual(plain(result.value), expected?.value))
      throw new Error(`it became ${formatJson(result.value)}`);
    if (!isDeepStrictEqual(plain(before), target)) throw new Error('the target has changed');
  };

  fuzz(t, fc.tuple(anyValue, fc.array(operation, { maxLength: 5 })), law, { share: 4, sizeOf, msPer10kB: 30 });
});

test('any text is applied as a JSON patch or refused', (t) => {
  const target = tree({ a: [1, { x: [] }], b: 2, c: ['3'], '~1': 1, '': {} });
  const law = ([text]: readonly [string]): void => {
    const parsed = parseJson(text);
    const operations = parsed.kind === 'parsed' ? parseJsonPatch(parsed.value) : parsed;
    assertRefused(operations);
    if (operations.kind === 'parsed') assertRefused(applyJsonPatch(target, operations.value));
  };

  fuzz(t, fc.tuple(mutated(corpus('json-patches'))), law, { share: 2, sizeOf, msPer10kB: 40 });
});

test('a merge patch gives what the pseudo-code of RFC 7386 gives, and leaves its target unchanged', (t) => {
  const law = ([target, patch]: readonly [unknown, unknown]): void => {
    const before = tree(target);
    const result = plain(applyMergePatch(before, tree(patch)));
    if (!isDeepStrictEqual(result, mergedPlainly(target, patch))) throw new Error(`it became ${JSON.stringify(result)}`);
    if (!isDeepStrictEqual(plain(before), target)) throw new Error('the target has changed');
  };

  fuzz(t, fc.tuple(anyValue, anyValue), law, { share: 2, sizeOf, msPer10kB: 20 });
});

test('strategic merge patches of objects and scalars are merge patches; any other patch is applied or refused', (t) => {
  const scalars = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(null, true, 'x', 1),
      fc.dictionary(name, tie('value'), { maxKeys: 4, noNullPrototype: true }),
    ),
  })).value;
  const members = fc.dictionary(name, scalars, { maxKeys: 4, noNullPrototype: true });
  const alike = ([target, patch]: readonly [unknown, unknown]): void => {
    const result = applyStrategicMergePatch(tree(withoutNulls(target)), tree(patch), {
      group: 'rbac.authorization.k8s.io',
      resource: 'roles',
    });
    const expected = withoutNulls(mergedPlainly(withoutNulls(target), patch));
    if (result.kind === 'refused' || !isDeepStrictEqual(plain(result.value), expected)) throw new Error(JSON.stringify(result));
  };
  fuzz(t, fc.tuple(members, members), alike, { sizeOf, msPer10kB: 20 });

  const directives = [
    '$patch',
    '$retainKeys',
    '$deleteFromPrimitiveList/finalizers',
    '$setElementOrder/webhooks',
    'finalizers',
    'webhooks',
    'metadata',
    'name',
    'uid',
    'ownerReferences',
  ];
  const { value: strange } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom<unknown>(null, 'replace', 'delete', 'merge', 'x', 1),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.constantFrom(...directives), tie('value'), { maxKeys: 5, noNullPrototype: true }),
    ),
  }));
  const law = ([target, patch]: readonly [unknown, unknown]): void =>
    assertRefused(
      applyStrategicMergePatch(tree(target), tree(patch), {
        group: 'admissionregistration.k8s.io',
        resource: 'mutatingwebhookconfigurations',
      }),
    );
  fuzz(t, fc.tuple(strange, strange), law, { share: 2, sizeOf, msPer10kB: 20 });
});

function assertRefused(result: Parsed<unknown>): void {
  if (result.kind === 'refused' && !['BadRequest', 'Invalid', 'RequestEntityTooLarge'].includes(result.refusal.reason))
    throw new Error(result.refusal.reason);
}

/** The pseudo-code of RFC 7386. */
function mergedPlainly(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const merged = new Map(isRecord(target) ? Object.entries(target) : []);
  for (const [member, value] of Object.entries(patch)) {
    if (value === null) merged.delete(member);
    else merged.set(member, mergedPlainly(merged.get(member), value));
  }
  return Object.fromEntries(merged);
}

function withoutNulls(value: unknown): unknown {
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, each]) => each !== null)
      .map(([member, each]) => [member, withoutNulls(each)]),
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
