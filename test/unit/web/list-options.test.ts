import { test } from '../../support/test.js';
import type { Parsed } from '../../../src/domain/parsed.js';
import { parseListOptions, parseWatchOptions, selectorBytes } from '../../../src/web/kube/list-options.js';

const limits = { selectorBytesMax: 64 };

function shown<T>(result: Parsed<T>): string {
  if (result.kind === 'parsed') return 'taken';
  const { reason, message, details } = result.refusal;
  if (reason !== 'Invalid') return `${reason}: ${message}`;
  return [reason, ...(details?.causes ?? []).map((cause) => `${cause.reason} ${cause.field} ${cause.message}`)].join('; ');
}

const withoutVersion =
  'FieldValueForbidden resourceVersionMatch Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided';
const withContinue = 'FieldValueForbidden resourceVersionMatch Forbidden: resourceVersionMatch is forbidden when continue is provided';
const needsMatch =
  'FieldValueForbidden resourceVersionMatch Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan';
const needsInitial =
  'FieldValueForbidden resourceVersionMatch Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided';

for (const [query, expected] of [
  ['', 'taken'],
  ['resourceVersion=0', 'taken'],
  ['resourceVersion=7', 'taken'],
  ['resourceVersion=18446744073709551615', 'taken'],
  ['resourceVersion=7&resourceVersionMatch=Exact', 'taken'],
  ['resourceVersion=0&resourceVersionMatch=NotOlderThan', 'taken'],
  ['limit=500&continue=token', 'taken'],
  ['continue=token&resourceVersion=0', 'taken'],
  ['limit=-1', 'taken'],
  ['limit=9223372036854775807', 'taken'],
  ['timeout=8m41s&shardSelector=x&unknown=1', 'taken'],
  ['resourceVersionMatch=Exact', `Invalid; ${withoutVersion}`],
  ['resourceVersionMatch=NotOlderThan', `Invalid; ${withoutVersion}`],
  [
    'resourceVersion=0&resourceVersionMatch=Exact',
    'Invalid; FieldValueForbidden resourceVersionMatch Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
  ],
  ['resourceVersion=0&resourceVersionMatch=NotOlderThan&continue=t', `Invalid; ${withContinue}`],
  [
    'resourceVersion=7&resourceVersionMatch=junk',
    'Invalid; FieldValueNotSupported resourceVersionMatch Unsupported value: "junk": supported values: "Exact", "NotOlderThan", ""',
  ],
  ['sendInitialEvents=true', 'Invalid; FieldValueForbidden sendInitialEvents Forbidden: sendInitialEvents is forbidden for list'],
  ['sendInitialEvents=false', 'Invalid; FieldValueForbidden sendInitialEvents Forbidden: sendInitialEvents is forbidden for list'],
  ['continue=token&resourceVersion=7', 'BadRequest: specifying resource version is not allowed when using continue'],
  ['limit=many', 'BadRequest: strconv.ParseInt: parsing "many": invalid syntax'],
  ['labelSelector=a%20b', "BadRequest: unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
  ['fieldSelector=spec.x%3D1', 'BadRequest: field label not supported: spec.x'],
] satisfies [string, string][]) {
  test(`a list with ${query === '' ? 'no options' : query} is ${expected.slice(0, 60)}`, (t) => {
    t.is(shown(parseListOptions(new URLSearchParams(query), limits)), expected);
  });
}

for (const junk of ['abc', '-1', '1.0', '0x10', ' 7', '7 ', '1e3', '٣']) {
  test(`the resourceVersion ${JSON.stringify(junk)} is invalid, in lists and watches (400)`, (t) => {
    const query = new URLSearchParams({ resourceVersion: junk });

    t.regex(shown(parseListOptions(query, limits)), /^BadRequest: invalid resource version: .*invalid syntax$/);
    t.regex(shown(parseWatchOptions(query, limits)), /^BadRequest: invalid resource version: .*invalid syntax$/);
  });
}

test('a resourceVersion beyond 64 bits is out of range, however long it is', (t) => {
  for (const text of ['18446744073709551616', '9'.repeat(60_000)])
    t.regex(shown(parseListOptions(new URLSearchParams({ resourceVersion: text }), limits)), /^BadRequest: .*value out of range$/);
});

test('leading zeros of a resourceVersion are ignored', (t) => {
  const parsed = parseListOptions(new URLSearchParams({ resourceVersion: '007' }), limits);

  t.is(parsed.kind === 'parsed' && parsed.value.resourceVersion, '7');
});

for (const [query, expected] of [
  ['', 'taken'],
  ['resourceVersion=7', 'taken'],
  ['sendInitialEvents=true&resourceVersionMatch=NotOlderThan', 'taken'],
  ['sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=7', 'taken'],
  ['continue=t', `Invalid; ${withContinue}`],
  ['continue=t&resourceVersion=0', `Invalid; ${withContinue}`],
  ['continue=t&resourceVersion=7', `Invalid; ${withContinue}`],
  ['continue=', 'taken'],
  ['timeout=8m41s', 'taken'],
  ['sendInitialEvents=true', `Invalid; ${needsMatch}`],
  ['sendInitialEvents=false', `Invalid; ${needsMatch}`],
  ['resourceVersionMatch=NotOlderThan', `Invalid; ${needsInitial}`],
  [
    'resourceVersionMatch=Exact',
    `Invalid; ${needsInitial}; FieldValueNotSupported resourceVersionMatch Unsupported value: "Exact": supported values: "NotOlderThan"`,
  ],
  [
    'sendInitialEvents=true&resourceVersionMatch=Exact',
    `Invalid; ${needsMatch}; FieldValueNotSupported resourceVersionMatch Unsupported value: "Exact": supported values: "NotOlderThan"`,
  ],
  ['sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=t', `Invalid; ${withContinue}`],
  ['timeoutSeconds=soon', 'BadRequest: strconv.ParseInt: parsing "soon": invalid syntax'],
] satisfies [string, string][]) {
  test(`a watch with ${query === '' ? 'no options' : query} is ${expected.slice(0, 60)}`, (t) => {
    t.is(shown(parseWatchOptions(new URLSearchParams(query), limits)), expected);
  });
}

test('a refusal of options names the group and kind of ListOptions', (t) => {
  const result = parseListOptions(new URLSearchParams('resourceVersionMatch=Exact'), limits);

  t.like(result.kind === 'refused' && result.refusal, {
    details: { group: 'meta.k8s.io', kind: 'ListOptions' },
    message:
      'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
  });
});

test('a label or field selector longer than its bound is a bad request, in a list and in a watch', (t) => {
  for (const [parameter, longest] of [
    ['labelSelector', 'a'.repeat(60)],
    ['fieldSelector', `metadata.name=${'a'.repeat(50)}`],
  ] as const) {
    const query = (text: string): URLSearchParams => new URLSearchParams({ [parameter]: text });
    t.is(shown(parseListOptions(query(longest), limits)), 'taken');
    const tooLong = query(`${longest},${longest}`);
    const expected = `BadRequest: ${parameter}: Too long: it has ${2 * longest.length + 1} bytes and may not be more than 64`;
    t.is(shown(parseListOptions(tooLong, limits)), expected);
    t.is(shown(parseWatchOptions(tooLong, limits)), expected);
  }
});

test('the memory of a request’s selectors is counted in bytes', (t) => {
  t.is(selectorBytes(new URLSearchParams({ labelSelector: 'a=é', fieldSelector: 'metadata.name=b' })), 19);
  t.is(selectorBytes(new URLSearchParams()), 0);
});
