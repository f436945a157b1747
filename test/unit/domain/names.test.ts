import { test } from '../../support/test.js';
import { annotationCauses, labelCauses, labelKeyFlaws, labelValueFlaws } from '../../../src/domain/syntax/label-syntax.js';
import { dnsLabelFlaws, dnsSubdomainFlaws, pathSegmentFlaws } from '../../../src/domain/syntax/name-syntax.js';

test('an invalid name is refused in the words of upstream (recorded: create bad name, long name)', (t) => {
  t.deepEqual(dnsSubdomainFlaws('Bad_Name!'), [
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
  ]);
  t.deepEqual(dnsSubdomainFlaws('n'.repeat(254)), ['must be no more than 253 characters']);
  t.deepEqual(dnsSubdomainFlaws('a.b-c.1'), []);
  t.is(dnsSubdomainFlaws('').length, 1);
  t.is(dnsSubdomainFlaws('a..b').length, 1);
  t.is(dnsSubdomainFlaws('a\n').length, 1);
});

test('a namespace is one label', (t) => {
  t.deepEqual(dnsLabelFlaws('default'), []);
  t.deepEqual(dnsLabelFlaws('a.b'), ['must not contain dots']);
  t.deepEqual(dnsLabelFlaws('n'.repeat(64)), ['must be no more than 63 characters']);
  t.regex(dnsLabelFlaws('-a').join(), /a lowercase RFC 1123 label must consist/);
});

test("an RBAC object's name is anything that can be a path segment", (t) => {
  t.deepEqual(pathSegmentFlaws('system:Reader *'), []);
  t.deepEqual(pathSegmentFlaws('..'), ["may not be '..'"]);
  t.deepEqual(pathSegmentFlaws('a/b%2'), ["may not contain '/'", "may not contain '%'"]);
});

test('label keys and values are checked separately (recorded: bad label value)', (t) => {
  t.deepEqual(
    labelCauses(new Map([['a b', 'c d']])).map(({ reason, message, field }) => [reason, message, field]),
    [
      [
        'FieldValueInvalid',
        `Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
        'metadata.labels',
      ],
      [
        'FieldValueInvalid',
        `Invalid value: "c d": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`,
        'metadata.labels',
      ],
    ],
  );
});

test('the bounds of keys and values are in bytes', (t) => {
  t.deepEqual(labelKeyFlaws('k'.repeat(63)), []);
  t.deepEqual(labelKeyFlaws('k'.repeat(64)), ['name part must be no more than 63 bytes']);
  t.deepEqual(labelKeyFlaws(`${'p'.repeat(254)}/k`), ['prefix part must be no more than 253 bytes']);
  t.deepEqual(labelKeyFlaws('/k'), ['prefix part must be non-empty']);
  t.regex(labelKeyFlaws('a/b/c').join(), /^a valid label key must consist .* with an optional DNS subdomain prefix/);
  t.is(labelKeyFlaws('kcp.io/').length, 2);
  t.deepEqual(labelValueFlaws(''), []);
  t.deepEqual(labelValueFlaws('v'.repeat(64)), ['must be no more than 63 bytes']);
});

test('annotations have one bound together, and their keys may be upper case (recorded: big annotations)', (t) => {
  t.deepEqual(annotationCauses(new Map([['A/B', 'any thing']])), []);
  t.deepEqual(annotationCauses(new Map([['a', 'x'.repeat(262_144)]])), [
    { reason: 'FieldValueTooLong', message: 'Too long: may not be more than 262144 bytes', field: 'metadata.annotations' },
  ]);
  t.is(annotationCauses(new Map([['a b', '']])).length, 1);
});
